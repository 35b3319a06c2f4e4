"""Gives slug.sh titles that its test does not have."""

from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import altered_files, outcome_of, run_program

FIXTURES = Path(__file__).parent / "fixtures"
ADDRESSES = {
    "Harbour opens again": "harbour-opens-again",
    "Trams in 2031": "trams-in-2031",
    "": "untitled",
    "-": "untitled",
    " ?! ... ?! ": "untitled",
    "A": "a",
    "9 to 5": "9-to-5",
    "ONE & ALL": "one-all",
    "two  spaces": "two-spaces",
    "a---b": "a-b",
    "five.....dots": "five-dots",
    "twelve............dots": "twelve-dots",
    "\ttabs\tand 'quotes'": "tabs-and-quotes",
    "under_score/slash\\back": "under-score-slash-back",
    "$HOME `ls` %s": "home-ls-s",
    "exactly twenty four char": "exactly-twenty-four-char",
    "exactly twenty four chars": "exactly-twenty-four-char",
    "just twenty-three chars": "just-twenty-three-chars",
    "just twenty-three chars - and more": "just-twenty-three-chars",
    "just twenty-three chars!": "just-twenty-three-chars",
    "!!! seven ways  to the summit": "seven-ways-to-the-summit",
    "abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnopqrstuvwx",
    "abcdefghijklmnopqrstuvw_x_y_z": "abcdefghijklmnopqrstuvw",
}


def verify(workspace: Path) -> Outcome:
    """Pass if slug.sh keeps the rules of the README for every title here and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("slug.sh",))
    titles = "".join(f"{title}\n" for title in ADDRESSES)
    given = run_program(("/bin/sh", "slug.sh"), workspace, stdin=titles, subject="slug.sh").splitlines()
    if len(given) != len(ADDRESSES):
        yield f"slug.sh printed {len(given)} lines for {len(ADDRESSES)} titles"
        return
    for (title, wanted), address in zip(ADDRESSES.items(), given, strict=True):
        if address != wanted:
            yield f"the title {title!r} gives {address!r:.60}, not {wanted!r}"
