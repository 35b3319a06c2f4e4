"""A real session is killed with -9 in the middle of a batch, and gone on with by the installed command."""

from pathlib import Path

import pytest

from geode.dev.fake_provider.anthropic_rules import refusals
from geode.dev.strict_provider import StrictProvider
from geode.llm.messages import ToolResult
from tests.done.command import geode
from tests.doubles.wire import problems
from tests.serve.killed_session import services
from tests.serve.test_resume_after_kill import killed

__all__ = ["killed"]

pytestmark = pytest.mark.slow


async def test_the_next_request_is_one_that_the_strictest_provider_takes(killed: Path) -> None:
    """R01: the request after a crash was refused, and so was every one after it."""
    provider = StrictProvider()
    session = services(killed / "root").reopen_session(
        killed / "root" / "sessions" / "01KILLED", killed / "workspace", adapter=provider
    )
    await session.aresume()
    messages = session.loop.messages
    session.close()
    (body,) = provider.bodies
    assert refusals(body) == []
    assert problems(messages, is_request=False) == []
    answers = [block for block in messages[2].blocks if isinstance(block, ToolResult)]
    assert [(answer.call_id, answer.is_error) for answer in answers] == [("w", True), ("s", True), ("r", True)]
    assert [answer.text.rpartition("saved. ")[2] for answer in answers] == [
        "It ran and succeeded, and is not to be repeated for its effect.",
        "Whether it took effect is unknown. Look before you do it again.",
        "No effect of it is on record; it may not have run at all.",
    ]


def test_the_command_goes_on_runs_nothing_twice_and_lists_what_is_unknown(killed: Path) -> None:
    root = ("--root", str(killed / "root"))
    resumed = geode(killed, "sessions", "resume", "01KILLED", "--workspace", str(killed / "workspace"), *root)
    assert resumed.code == 3, resumed.err  # an answer, and not a verified one: an effect of it is unknown
    assert (killed / "workspace" / "shell.txt").read_text() == "ran\n"
    assert (killed / "workspace" / "written.txt").read_text() == "once"
    listed = geode(killed, "effects", "ls", *root)
    assert listed.out.split()[2:4] == ["shell", "uncertain"]
    assert len(listed.out.splitlines()) == 1
    every = geode(killed, "effects", "ls", "01KILLED", "--all", *root)
    assert [line.split()[2:4] for line in every.out.splitlines()] == [
        ["write_file", "succeeded"],
        ["shell", "uncertain"],
    ]
