"""Reads the file line by line, as the import does, and compares every book."""

import json
from collections.abc import Iterator
from pathlib import Path

from experiments.suite import Outcome
from experiments.suites.verifying import Fault, altered_files, answer_text, other_than, outcome_of

FIXTURES = Path(__file__).parent / "fixtures"
BOOKS = [
    {"id": "b1", "title": "Salt and Stone", "pages": 212, "price": 14.0},
    {"id": "b2", "title": 'The "Second" Bridge', "pages": 340, "price": 22.0},
    {"id": "b3", "title": "Tramways of the North", "pages": 128, "price": 16.9},
    {"id": "b4", "title": "What the Tide Left", "pages": 264, "price": 18.5},
    {"id": "b5", "title": "Letters, Lists, Lies", "pages": 180, "price": 11.0},
    {"id": "b6", "title": "Gardens at Night", "pages": 96, "price": 9.8},
]


def verify(workspace: Path) -> Outcome:
    """Pass if every book can be read and is right, and nothing else was altered."""
    return outcome_of(_faults(workspace))


def _faults(workspace: Path) -> Iterator[str]:
    yield from altered_files(workspace, FIXTURES, may_change=("books.jsonl",))
    lines = [line for line in answer_text(workspace, "books.jsonl").split("\n") if line.strip()]
    if len(lines) != len(BOOKS):
        yield f"books.jsonl has {len(lines)} lines for {len(BOOKS)} books"
        return
    for number, (line, book) in enumerate(zip(lines, BOOKS, strict=True), start=1):
        yield from other_than(_as_numbers(book), _as_numbers(_read(line, number)), f"books.jsonl, line {number},")


def _read(line: str, number: int) -> dict[str, object]:
    try:
        pairs = json.loads(line, object_pairs_hook=list)
        book = dict(pairs)
    except (ValueError, TypeError, RecursionError) as error:
        raise Fault(f"books.jsonl: line {number} is no book: {error}") from error
    if len(book) != len(pairs):
        raise Fault(f"books.jsonl: line {number} has a key twice")
    return book


def _as_numbers(book: dict[str, object]) -> dict[str, object]:
    """A price of 14 is one of 14.00."""
    return {key: float(value) if type(value) in {int, float} else value for key, value in book.items()}  # type: ignore[arg-type]
