"""Done line 1: each line of PROVIDERS section 7 that is not about Jev has a test that names it, and that runs.

The real SDKs are driven against the strict double. The lines about Jev are those of the judges.
"""

import ast
import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import requires
from pathlib import Path

import pytest
from pytest_socket import SocketConnectBlockedError

from geode.dev.fake_provider.script import Script
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.credentials import ACCESS
from geode.llm.errors import RequestInvalid
from geode.llm.messages import Message, Speaker, ToolUse
from geode.llm.routes import Route, parse_model
from tests.done.collected import REPO, Collected, collect, lines_named
from tests.doubles.provider import keys_of
from tests.doubles.snapshots import READ, asked
from tests.live.test_live import MODELS
from tests.llm.behaviour.wires import WIRES, Wire

SUITE, FAILURES = "tests/llm/behaviour/test_turns.py", "tests/llm/behaviour/test_failures.py"
RETRY, LOOP, WORDS = "tests/llm/test_retry.py", "tests/loop/test_agentic_loop.py", "tests/llm/test_http_errors.py"
ANTHROPIC, OPENAI = "tests/llm/test_anthropic.py", "tests/llm/test_openai_responses.py"
CHAT, ADMISSION = "tests/llm/test_chat_completions.py", "tests/llm/test_admission.py"
ANYWHERE, HERE = "tests/done/test_no_key_anywhere.py", "tests/done/test_providers_section_7.py"
WIRES_ONE_BY_ONE = (ANTHROPIC, OPENAI, CHAT)

LINES: Mapping[int, tuple[str, tuple[str, ...]]] = {
    1: ("an SDK sends once; one owner retries", (FAILURES, RETRY, *WIRES_ONE_BY_ONE)),
    2: ("what is worth another try", (FAILURES, RETRY, WORDS, *WIRES_ONE_BY_ONE)),
    3: ("no wait is longer than we allow", (FAILURES, RETRY, WORDS, CHAT)),
    4: ("a page under status 200 is no answer", WIRES_ONE_BY_ONE),
    5: ("a reply without choices, or that ends in an error, failed", (CHAT,)),
    6: ("failures inside of a stream, by their words", (FAILURES, WORDS, *WIRES_ONE_BY_ONE)),
    7: ("a stream without its end is cut", (FAILURES, *WIRES_ONE_BY_ONE)),
    8: ("too long is one error, whoever says it", (FAILURES, WORDS, *WIRES_ONE_BY_ONE)),
    9: ("what an error keeps", (FAILURES, WORDS, *WIRES_ONE_BY_ONE)),
    10: ("no key is written anywhere", (ANYWHERE, WORDS, ANTHROPIC, CHAT)),
    11: ("one result for each call, 1 to 8, and after a resume", (SUITE, FAILURES)),
    12: ("calls that were not run are answered", (SUITE, FAILURES, OPENAI)),
    13: ("no call of a cut turn is run", (SUITE, CHAT)),
    14: ("what the provider gave goes back as it was", (SUITE, FAILURES, *WIRES_ONE_BY_ONE)),
    15: ("unknown blocks are carried", (SUITE, ANTHROPIC, OPENAI)),
    16: ("a pause is gone on with, a limited number of times", (SUITE, ANTHROPIC)),
    17: ("a refusal is an outcome of its own", (SUITE, *WIRES_ONE_BY_ONE)),
    18: ("an unknown stop is no success", (SUITE, *WIRES_ONE_BY_ONE)),
    19: ("tools and thinking with every request", (SUITE, *WIRES_ONE_BY_ONE)),
    20: ("no sampling for Claude", (ADMISSION, ANTHROPIC, CHAT)),
    21: ("nothing is stored at OpenAI", (OPENAI,)),
    22: ("what Z.ai takes", (ADMISSION, CHAT)),
    23: ("one record of usage, and None for what is not said", (SUITE, *WIRES_ONE_BY_ONE)),
    24: ("each token counts once", (SUITE, *WIRES_ONE_BY_ONE)),
    25: ("failed requests are on the record", (SUITE, FAILURES, RETRY, LOOP)),
    26: ("moving ids, and models that are not the pinned one", (SUITE, ADMISSION, *WIRES_ONE_BY_ONE)),
    27: ("OpenRouter's upstream is pinned and recorded", (CHAT,)),
    39: ("one strict double, one suite for all wires, and a live one", (HERE,)),
    40: ("no test leaves this host", (HERE,)),
}
"""By number, in our own words: what the line asks for, and in which modules a test must hold it."""

SUITES = (SUITE, FAILURES)
ROUTES = ("anthropic", "openai", "openrouter", "zai")


def unheld(tests: Sequence[Collected]) -> list[str]:
    """Say which line is held by no test of a module that must hold it, or not on each wire."""
    return [
        f"{number} ({words}): no test of {module}{wire and f' on {wire}'}"
        for number, (words, modules) in LINES.items()
        for module in modules
        for wire in (ROUTES if module in SUITES else ("",))
        if not any(
            test.runs and test.module == module and number in test.lines and (not wire or f"[{wire}/" in test.node)
            for test in tests
        )
    ]


@pytest.fixture(scope="module")
def tests(tmp_path_factory: pytest.TempPathFactory) -> list[Collected]:
    modules = {REPO / module for _, modules in LINES.values() for module in modules}
    return collect(tmp_path_factory.mktemp("collected"), sorted(modules))


@pytest.mark.slow
def test_each_line_is_held_by_tests_that_name_it(tests: list[Collected]) -> None:
    assert unheld(tests) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", LINES)
def test_a_line_that_loses_its_tests_in_one_module_is_found(tests: list[Collected], number: int) -> None:
    """Sabotage: removed, skipped, or left out on one wire."""
    module = LINES[number][1][0]
    ours = [test for test in tests if number in test.lines and test.module == module]
    others = [test for test in tests if test not in ours]
    removed, skipped = unheld(others), unheld([*others, *(replace(test, runs=False) for test in ours)])
    assert removed == skipped
    assert any(text.startswith(f"{number} ") for text in removed)
    if module in SUITES:
        without_zai = [test for test in tests if test not in ours or "[zai/" not in test.node]
        assert f"{number} ({LINES[number][0]}): no test of {module} on zai" in unheld(without_zai)


@pytest.mark.slow
def test_what_may_be_skipped_or_is_not_collected_holds_nothing(tmp_path: Path) -> None:
    """Sabotage: what pytest itself makes of a file, not what the file says."""
    (tmp_path / "test_some.py").write_text(
        '"""PROVIDERS 7: so do all."""\nimport pytest\n'
        'def test_runs():\n    """PROVIDERS 1, 2 and 40: and no section 1.1."""\n'
        '@pytest.mark.skip\ndef test_skipped():\n    """PROVIDERS 3."""\n'
        '@pytest.mark.skipif("1 > 0")\ndef test_perhaps():\n    """PROVIDERS 4."""\n'
        'def test_gives_up():\n    """PROVIDERS 5."""\n    pytest.skip("no")\n'
        'def not_a_test():\n    """PROVIDERS 6."""\n'
    )
    found = collect(tmp_path, [tmp_path / "test_some.py"])
    assert [(test.lines, test.runs) for test in found] == [
        ((7, 1, 2, 40), True),
        ((7, 3), False),
        ((7, 4), False),
        ((7, 5), False),
    ]
    assert lines_named("PROVIDERS 1.1: a section. PROVIDERS 7") == (7,)


# The last two lines ---------------------------------------------------------------------------------------------------


def test_every_route_to_a_conversation_is_in_the_suite_and_in_the_live_one() -> None:
    """PROVIDERS 39: whoever adds a route adds it to both."""
    conversing = {route for route in ACCESS if route is not Route.TYPESAFE}
    assert {parse_model(wire.model).route for wire in WIRES} == conversing
    assert {parse_model(model).route for model in MODELS} == conversing


@pytest.mark.slow
def test_the_live_suite_runs_only_if_it_is_asked_for(tmp_path: Path) -> None:
    """PROVIDERS 39: it costs money, and leaves this host."""
    folder = [REPO / "tests" / "live"]
    assert collect(tmp_path, folder) == []
    assert collect(tmp_path, folder, "-m", "not slow") == []
    assert len(collect(tmp_path, folder, "-m", "live")) == len(MODELS)


@pytest.fixture(scope="module")
def double() -> FakeProvider:
    with FakeProvider() as running:
        yield running


@pytest.mark.slow
def test_the_live_suite_passes_where_a_provider_answers(double: FakeProvider) -> None:
    """PROVIDERS 39: nobody would know otherwise whether it can pass. Here the keys lead to the double."""
    double.play(Script(models=tuple(parse_model(model).model_id for model in MODELS)))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "live", "-p", "no:cacheprovider", "tests/live"],
        cwd=REPO,
        env={**os.environ, **keys_of(double), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert f"{len(MODELS)} passed" in done.stdout, done.stdout


@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_the_double_refuses_a_history_in_which_a_call_has_no_result(double: FakeProvider, wire: Wire) -> None:
    """PROVIDERS 39: a double that takes everything would let each adapter pass."""
    double.play(Script())
    call = Message(role=Speaker.ASSISTANT, blocks=(ToolUse(call_id="c1", name="read_file", arguments="{}"),))
    unanswered = asked("Read it.", call, "And now?", tools=[READ], system="Be brief.")
    with pytest.raises(RequestInvalid, match=r"c1|tool_use|tool_call"):
        await wire.make(wire.binding(double), None, None).acomplete(unanswered)
    assert [request.status for request in double.requests] == [400]


OUTSIDE = "192.0.2.1"  # set apart for documentation: nobody has it (RFC 5737)


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
def test_a_test_that_leaves_this_host_fails() -> None:
    """PROVIDERS 40: whatever opens the connection."""
    with pytest.raises(SocketConnectBlockedError):
        socket.create_connection((OUTSIDE, 443), timeout=1)
    with pytest.raises(SocketConnectBlockedError):
        asyncio.run(asyncio.open_connection(OUTSIDE, 443))


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
@pytest.mark.parametrize("wire", WIRES, ids=str)
async def test_an_adapter_that_leaves_this_host_fails(double: FakeProvider, wire: Wire) -> None:
    """PROVIDERS 40: a mock that does not intercept an SDK would be seen here."""
    binding = replace(wire.binding(double), base_url=f"http://{OUTSIDE}/v1", timeout_s=5.0)
    with pytest.raises(Exception) as caught:  # noqa: PT011  (each SDK wraps it in its own way)
        await wire.make(binding, None, None).acomplete(asked(system="Be brief."))
    assert SocketConnectBlockedError in map(type, behind(caught.value))


def behind(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that led to it."""
    yield error
    for one in (error.__context__, *getattr(error, "exceptions", ())):
        if one is not None:
            yield from behind(one)


UNSEEING = {"respx", "pytest_httpx", "pytest-httpx"}
"""What intercepts httpx alone, and lets the SDKs, which stand on httpx2, through to the network in silence."""


def test_no_test_relies_on_a_mock_that_the_sdks_pass_by() -> None:
    """PROVIDERS 40."""
    assert unseeing_imports((REPO / "tests").rglob("*.py")) == []
    wanted = {requirement.partition(">")[0].strip() for requirement in requires("geode-agent") or ()}
    assert not wanted & UNSEEING


def test_such_a_mock_would_be_found(tmp_path: Path) -> None:
    """Sabotage."""
    (tmp_path / "a.py").write_text("import respx\n")
    (tmp_path / "b.py").write_text("def f():\n    from pytest_httpx import HTTPXMock\n")
    (tmp_path / "c.py").write_text('pytest_plugins = ["pytest_httpx"]\n')
    assert unseeing_imports(sorted(tmp_path.glob("*.py"))) == [
        "a.py: respx",
        "b.py: pytest_httpx",
        "c.py: pytest_httpx",
    ]


def unseeing_imports(files: Collection[Path]) -> list[str]:
    """Return which files use one of them, as a module or as a plugin."""
    found = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in UNSEEING) else ():
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Assign) and "pytest_plugins" in ast.unparse(node.targets[0]):
                names = [leaf.value for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant)]
            found += [f"{file.name}: {name}" for name in names if name.split(".")[0] in UNSEEING]
    return found
