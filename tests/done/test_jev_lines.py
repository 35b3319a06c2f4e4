"""Done line 1 of the judges: each line of PROVIDERS section 7 about Jev has a test on both of its routes that runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from judges.jev_wire import WAYS
from tests.done.collected import REPO, Collected, collect

WIRE, ENGINE = "tests/judges/test_jev_wire.py", "tests/judges/test_jev.py"
ANSWERS, QUESTIONS = "tests/judges/test_jev_answers.py", "tests/judges/test_jev_questions.py"

LINES: Mapping[int, tuple[str, tuple[str, ...]]] = {
    28: ("it decides, and does nothing else", (WIRE,)),
    29: ("what is not sound is not sent", (WIRE, ENGINE)),
    30: ("address, spelling and key belong together", (WIRE,)),
    31: ("a malformed decision is no low score", (ENGINE,)),
    32: ("certainty of a noul, and bands that are configured", (ENGINE,)),
    33: ("levels are counted by their own question", (ENGINE,)),
    34: ("one request for all dimensions", (ENGINE,)),
    35: ("numbers, and what binds a threshold", (ENGINE,)),
    36: ("cost as reported, or computed and marked", (ENGINE,)),
    37: ("the same call again and again", (ENGINE,)),
    38: ("what is judged is state", (ENGINE,)),
}
"""By number, in our own words: what the line asks for, and in which modules a test holds it on each route."""

PURE: Mapping[int, tuple[str, ...]] = {
    29: (QUESTIONS,),
    31: (ANSWERS,),
    32: (ANSWERS,),
    33: (ANSWERS,),
    35: (QUESTIONS,),
    38: (QUESTIONS,),
}
"""Modules that hold a line besides, where no route has a part in it."""


def unheld(tests: Sequence[Collected]) -> list[str]:
    """Say which line is held by no test of a module, or not on each route."""
    by_route = [
        f"{number} ({words}): no test of {module} on {route}"
        for number, (words, modules) in LINES.items()
        for module in modules
        for route in WAYS
        if not any(_holds(test, number, module) and re.search(rf"[\[-]{route}[\]-]", test.node) for test in tests)
    ]
    pure = [
        f"{number}: no test of {module}"
        for number, modules in PURE.items()
        for module in modules
        if not any(_holds(test, number, module) for test in tests)
    ]
    return by_route + pure


def _holds(test: Collected, number: int, module: str) -> bool:
    return test.runs and test.module == module and number in test.lines


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> list[Collected]:
    modules = [REPO / module for module in (WIRE, ENGINE, ANSWERS, QUESTIONS)]
    return collect(tmp_path_factory.mktemp("collected"), modules)


@pytest.mark.slow
def test_each_line_is_held_on_both_routes_by_tests_that_name_it(tests: list[Collected]) -> None:
    assert unheld(tests) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", LINES)
def test_a_line_that_loses_its_tests_is_found(tests: list[Collected], number: int) -> None:
    """Sabotage: removed, skipped, or left out on one route."""
    words, modules = LINES[number]
    ours = [test for test in tests if number in test.lines]
    others = [test for test in tests if test not in ours]
    assert unheld(others) == unheld([*others, *(replace(test, runs=False) for test in ours)])
    assert any(text.startswith(f"{number} ") for text in unheld(others))
    on_one = [test for test in tests if test not in ours or "typesafe" not in test.node]
    assert f"{number} ({words}): no test of {modules[0]} on typesafe" in unheld(on_one)


def test_the_lines_are_those_of_the_specification(shared: Path) -> None:
    """Eleven: whoever adds one there is told here."""
    text = (shared / "PROVIDERS.md").read_text(encoding="utf-8")
    [section] = re.findall(r"^## 7\. .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    [jev] = re.findall(r"^Jev$(.*?)^$(?=\nTest bed)", section, re.MULTILINE | re.DOTALL)
    assert [int(number) for number in re.findall(r"^(\d+)\. ", jev, re.MULTILINE)] == [*LINES]
