"""Issue 5, done line 3: `geode ask` on a provider's model streams and says what it cost; without a key it says how."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from geode.dev.fake_provider.script import Call, Cut, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from geode.records.timeline import read_timeline
from tests.done.command import GEODE, environment, geode, start
from tests.doubles.provider import keys_of

ASK = ("ask", "--model", "anthropic/claude-opus-5-5")
TIME_LIMIT_S = 60
WORDS = "One two three four five six seven eight nine ten, and so on until it is all said. " * 3


@pytest.fixture(scope="module")
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


def at(home: Path) -> tuple[str, ...]:
    (home / "workspace").mkdir(exist_ok=True)
    (home / "workspace" / "notes.txt").write_text("The bridge opened in 1931.\n")
    return ("--workspace", str(home / "workspace"), "--root", str(home / "root"))


def anthropic(double: FakeProvider) -> Mapping[str, str]:
    """The one key and the one address that done line 3 names."""
    return {"ANTHROPIC_API_KEY": double.key(Route.ANTHROPIC), "ANTHROPIC_BASE_URL": double.base_url(Route.ANTHROPIC)}


def test_without_a_key_the_error_names_the_variable_the_route_and_the_other_routes(tmp_path: Path) -> None:
    ran = geode(tmp_path, *ASK, "When did it open?", *at(tmp_path))
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err == (
        "geode: no key for 'anthropic/claude-opus-5-5': the route anthropic needs ANTHROPIC_API_KEY; set it in the"
        " environment. The model is also reached as 'openrouter/anthropic/claude-opus-5.5' (OPENROUTER_API_KEY)\n"
    )


def test_a_script_gets_the_whole_answer_on_standard_output_and_the_cost_beside_it(
    tmp_path: Path, double: FakeProvider
) -> None:
    """The answer is that of a tool round trip, and what it cost is computed from the tokens of both calls."""
    read = Call(name="read_file", arguments={"path": "notes.txt"})
    double.play(Script(steps=(Step(text="I look.", calls=(read,)), Step(text="In 1931."))))
    ran = geode(tmp_path, *ASK, "When did it open?", *at(tmp_path), more=anthropic(double))
    assert ran.code == 0, ran.err
    assert ran.out == "In 1931.\n"
    assert ran.err.startswith("[completed, 2 rounds, ")
    assert " USD by the catalogue's prices, session " in ran.err
    (timeline,) = (tmp_path / "root" / "sessions").glob("*/timeline.jsonl")
    calls = [body for body in read_timeline(timeline) if body["kind"] == "model_called"]
    costs = [body["cost_usd"] for body in calls]
    assert f"{sum(cost for cost in costs if isinstance(cost, float)):.4f} USD" in ran.err
    assert [body["served_model"] for body in calls] == ["claude-opus-5-5"] * 2


def test_where_it_is_asked_to_stream_it_shows_calls_and_replies_that_begin_again(
    tmp_path: Path, double: FakeProvider
) -> None:
    look = Call(name="list_files")
    steps = (Step(text="I look.", calls=(look,)), Step(text=WORDS, cut=Cut(after_events=5)), Step(text="In 1931."))
    double.play(Script(steps=steps))
    ran = geode(tmp_path, *ASK, "When?", "--stream", *at(tmp_path), more=anthropic(double))
    assert ran.code == 0, ran.err
    assert ran.out.startswith("I look.\nOne two three")
    assert ran.out.endswith("\nIn 1931.\n")
    assert ran.err.splitlines()[:2] == [
        "[calls list_files]",
        "[the reply broke off and begins again; what stands above of it does not count]",
    ]


def test_json_is_one_object_also_where_it_is_asked_to_stream(tmp_path: Path, double: FakeProvider) -> None:
    double.play(Script(steps=(Step(text="In 1931."),)))
    ran = geode(tmp_path, *ASK, "When?", "--stream", "--json", *at(tmp_path), more=anthropic(double))
    assert ran.json["text"] == "In 1931."
    usage = ran.json["usage"]
    assert isinstance(usage, dict)
    assert usage["cost_origin"] == "computed"


@pytest.mark.slow
def test_on_a_terminal_the_answer_stands_there_before_it_is_whole(tmp_path: Path, double: FakeProvider) -> None:
    """Streams to the terminal: its first words are read while the provider still writes the last ones."""
    double.play(Script(steps=(Step(text=WORDS, event_ms=150),)))
    person, side = pty.openpty()
    process = subprocess.Popen(
        [str(GEODE), *ASK, "Count.", *at(tmp_path)],
        stdin=side,
        stdout=side,
        stderr=side,
        env=environment(tmp_path, anthropic(double)),
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(side)
    screen, before_the_end = "", ""
    deadline = time.monotonic() + TIME_LIMIT_S
    while process.poll() is None or select.select([person], [], [], 0)[0]:
        assert time.monotonic() < deadline, screen
        if select.select([person], [], [], 0.1)[0]:
            try:
                screen += os.read(person, 65_536).decode()
            except OSError:  # the other side is closed
                break
        if "One two three" in screen and "[completed" not in screen:
            before_the_end = screen
    os.close(person)
    assert process.wait(TIME_LIMIT_S) == 0
    assert "One two three" in before_the_end
    assert screen.count("One two three") == 3, "what was read is not printed again"
    assert " USD by the catalogue's prices" in screen


def test_the_options_of_the_command_are_what_the_provider_is_asked(tmp_path: Path, double: FakeProvider) -> None:
    double.play(Script(steps=(Step(text="In 1931."),)))
    asked = ("--effort", "low", "--max-output-tokens", "2000")
    assert geode(tmp_path, *ASK, "When?", *asked, *at(tmp_path), more=anthropic(double)).code == 0
    body = double.requests[0].body
    assert (body["max_tokens"], body["output_config"]) == (2_000, {"effort": "low"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--effort", "none"),
            "effort is 'none'; anthropic/claude-opus-5-5 takes one of low, medium, high, xhigh, max",
        ),
        (("--max-output-tokens", "128001"), "max_output_tokens is 128001; anthropic/claude-opus-5-5 writes at most"),
    ],
)
def test_an_option_that_the_model_does_not_take_is_refused_before_a_request(
    tmp_path: Path, double: FakeProvider, arguments: tuple[str, ...], said: str
) -> None:
    double.play(Script())
    ran = geode(tmp_path, *ASK, "When?", *arguments, *at(tmp_path), more=anthropic(double))
    assert ran.code == 1
    assert said in ran.err
    assert double.requests == ()


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-6-sol", "openai-codex/gpt-6-sol", "zai/glm-5.3", "openrouter/anthropic/claude-opus-5.5"],
)
def test_each_other_route_answers_by_its_own_key_and_address(tmp_path: Path, double: FakeProvider, model: str) -> None:
    double.play(Script(steps=(Step(text="In 1931."),)))
    ran = geode(tmp_path, "ask", "--model", model, "When?", *at(tmp_path), more=keys_of(double))
    assert (ran.code, ran.out) == (0, "In 1931.\n"), ran.err
    unknown = "cost unknown" in ran.err
    assert unknown is (model == "openai-codex/gpt-6-sol")


@pytest.mark.slow
def test_a_killed_session_is_resumed_on_its_model_and_streams(tmp_path: Path, double: FakeProvider) -> None:
    """It is asked again with what the session was opened with."""
    double.play(Script(steps=(Step(text=WORDS, event_ms=500),)))
    dying = start(tmp_path, *ASK, "When?", "--effort", "low", *at(tmp_path), more=anthropic(double))
    assert double.wait(1, timeout_s=TIME_LIMIT_S)
    dying.kill()
    dying.communicate()
    double.play(Script(steps=(Step(text="In 1931."),)))
    ran = geode(tmp_path, "sessions", "resume", "last", "--stream", *at(tmp_path), more=anthropic(double))
    assert (ran.code, ran.out) == (0, "In 1931.\n"), ran.err
    assert " USD by the catalogue's prices" in ran.err
    assert double.requests[0].body["output_config"] == {"effort": "low"}
