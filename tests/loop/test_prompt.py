"""Facts of `geode.loop.prompt`: what stands in the system prompt, and where each piece comes from."""

from pathlib import Path

import pytest

from geode.loop.prompt import (
    WORKSPACE_NOTE,
    PromptSourceError,
    read_rules_folder,
    read_sections,
    system_prompt,
)
from geode.scaffold import PromptSource, Scaffold, Skill, ToolPlan

BOOK = """preface

# One #
first

## Two words
second
more

#
not a heading
#no heading either

### 셋
third"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_text(BOOK, encoding="utf-8")
    return path


def test_a_whole_file_is_one_source_named_without_its_folder(book: Path) -> None:
    """An absolute path of one machine would make two equal scaffolds different."""
    source = read_sections(book)
    assert (source.kind, source.origin, source.text) == ("file_sections", "AGENTS.md", BOOK)


def test_sections_come_in_the_order_asked_for(book: Path) -> None:
    source = read_sections(book, ["셋", "One"])
    assert source.origin == "AGENTS.md#셋,One"
    assert source.text == "## 셋\nthird\n\n## One\nfirst"


def test_a_section_runs_to_the_next_heading(book: Path) -> None:
    """A line of `#` alone is none, and neither is one without a blank."""
    text = read_sections(book, ["Two words"]).text
    assert text == "## Two words\nsecond\nmore\n\n#\nnot a heading\n#no heading either"


def test_a_missing_section_is_refused_with_those_that_there_are(book: Path) -> None:
    with pytest.raises(
        PromptSourceError, match=r"AGENTS\.md has no section 'Tow words'; it has 'One', 'Two words', '셋'"
    ):
        read_sections(book, ["One", "Tow words"])


def test_a_file_without_headings_has_no_section(tmp_path: Path) -> None:
    """A text file that was never meant to be cut up."""
    path = tmp_path / "notes.md"
    path.write_text("No heading here.", encoding="utf-8")
    with pytest.raises(PromptSourceError, match="has no section 'One'; it has none"):
        read_sections(path, ["One"])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (256 * 1024 + 1), None])
def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "rules.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PromptSourceError, match=r"rules\.md (cannot be read|has more than 256 KiB)"):
        read_sections(path)


def test_a_file_of_blanks_is_read_in_one_pass(tmp_path: Path) -> None:
    """A pattern that tries every end from every start would take minutes."""
    path = tmp_path / "a.md"
    path.write_text("# " + " " * 200_000 + "x\n" + "#\n" * 20_000)
    with pytest.raises(PromptSourceError, match="no section 'y'"):
        read_sections(path, ["y"])


def test_a_rules_folder_is_read_by_name_and_only_markdown(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    (folder / "sub.md").mkdir(parents=True)
    for name, text in {"b.md": "B\n", "a.md": "\nA", "c.txt": "C"}.items():
        (folder / name).write_text(text)
    sources = read_rules_folder(folder)
    assert [(source.origin, source.text) for source in sources] == [("rules:a.md", "A"), ("rules:b.md", "B")]


def test_a_rules_folder_without_rules_is_refused(tmp_path: Path) -> None:
    """An empty prompt in place of the rules that somebody meant would pass unseen through a whole sweep."""
    with pytest.raises(PromptSourceError, match="holds no Markdown file; rules are files that end in"):
        read_rules_folder(tmp_path)
    with pytest.raises(PromptSourceError, match="no folder of rules"):
        read_rules_folder(tmp_path / "missing")


def test_the_system_prompt_joins_its_pieces_in_order() -> None:
    scaffold = Scaffold(
        prompt=(PromptSource(text=" first \n"), PromptSource(text=""), PromptSource(text="second \ud83c")),
        tools=ToolPlan(tools=()),
        decomposition="Plan first.",
        skills=(Skill(name="csv", text="Use csv."),),
    )
    assert system_prompt(scaffold) == f"first\n\nsecond �\n\n{WORKSPACE_NOTE}\n\nPlan first.\n\nSkill csv:\nUse csv."


def test_an_empty_scaffold_still_says_where_the_workspace_is() -> None:
    assert system_prompt(Scaffold(tools=ToolPlan(tools=()))) == WORKSPACE_NOTE
