"""Done line 8: each word of the design resolves, through ARCHITECTURE.md, to an existing symbol."""

import importlib
import re
from pathlib import Path

import pytest

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
ROW = re.compile(r"^\| `?([^|`]+)`? \| `([a-z_]+(?:\.\w+)+)` \|$", re.MULTILINE)
WORDS = dict(ROW.findall(ARCHITECTURE.read_text(encoding="utf-8").split("## The words")[1]))
NOT_BUILT_YET = {"LaneQueue", "CLIPoller", "run_agent"}


def resolve(dotted: str) -> object:
    """Import as much of `dotted` as is a module, and look the rest up."""
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name)
        return found
    raise LookupError(dotted)


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_a_symbol(word: str) -> None:
    """A word in a document that nothing answers to is a promise nobody keeps."""
    assert resolve(WORDS[word]) is not None


def test_a_word_whose_symbol_is_gone_is_noticed() -> None:
    """The test above can fail."""
    with pytest.raises((AttributeError, LookupError)):
        resolve("geode.scaffold.Scafold")


def test_no_word_of_the_design_is_left_out(shared: Path) -> None:
    """Section 3 of the design names the words; the table must have them all, by the same names."""
    section = (shared / "DESIGN.md").read_text(encoding="utf-8").split("## 3. The words")[1].split("## 4.")[0]
    words = {
        word.strip() for row in re.findall(r"^\| ([A-Z][^|]*) \|", section, re.MULTILINE) for word in row.split(",")
    }
    fixed = set(re.findall(r"`(\w+(?:\.\w+)?)`", section.split("These runtime names are fixed")[1]))
    assert len(words) > 20
    assert len(fixed) > 15
    missing = (words | fixed) - set(WORDS) - NOT_BUILT_YET
    assert not missing
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert all(name in text for name in NOT_BUILT_YET)
