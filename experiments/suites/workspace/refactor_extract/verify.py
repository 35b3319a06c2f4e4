"""Gives both scripts prices that their test does not have, and then another price.sh, to see whether they use it."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, answer_text, outcome_of, run_program

FIXTURES = Path(__file__).parent / "fixtures"
SCRIPTS = ("invoice.sh", "quote.sh")
ITEMS = "tea 250 7\nink 7 7\npaper 350 19\nglue 50 19\nair 0 7\npen 1 50\ncup 1049 19\n"
PRINTED = {
    "invoice.sh": "tea 268\nink 7\npaper 417\nglue 60\nair 0\npen 2\ncup 1248\nsum 2002\n",
    "quote.sh": "".join(
        f"{name}: from {cents}\n"
        for name, cents in (
            ("tea", 268),
            ("ink", 7),
            ("paper", 417),
            ("glue", 60),
            ("air", 0),
            ("pen", 2),
            ("cup", 1248),
        )
    ),
}
OTHER_PRICE = "gross() { echo 3; }\n"
PRINTED_OTHERWISE = {"invoice.sh": "tea 3\nink 3\nsum 6\n", "quote.sh": "tea: from 3\nink: from 3\n"}


def verify(workspace: Path) -> Outcome:
    """Pass if both scripts print what they should, by means of price.sh, and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=SCRIPTS)
    texts = {name: answer_text(workspace, name) for name in (*SCRIPTS, "price.sh")}
    for script in SCRIPTS:
        if re.search(r"\bgross\s*\(\)|\bfunction\s+gross\b", texts[script]):
            yield f"{script} still defines gross"
        yield from _printed_otherwise(workspace, script, ITEMS, PRINTED[script])
    with tempfile.TemporaryDirectory() as name:
        for script in SCRIPTS:
            shutil.copyfile(workspace / script, Path(name, script))
        Path(name, "price.sh").write_text(OTHER_PRICE, encoding="utf-8")
        for script in SCRIPTS:
            for reason in _printed_otherwise(Path(name), script, "tea 250 7\nink 7 7\n", PRINTED_OTHERWISE[script]):
                yield f"with another price.sh: {reason}"


def _printed_otherwise(folder: Path, script: str, items: str, wanted: str) -> Iterator[str]:
    printed = run_program(("/bin/sh", script), folder, stdin=items, subject=script)
    if printed != wanted:
        yield f"{script} printed {printed!r:.120}, not {wanted!r:.120}"
