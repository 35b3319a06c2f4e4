"""Facts of `geode.hooks.command` and its words: what a hook's command is told, what it can see, and how it ends."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.authority import SafetyLevel
from geode.hooks.command import CommandEntry, CommandHook, CommandPlace, run_command
from geode.hooks.outcomes import NoAnswer
from geode.hooks.points import Block, Decision, HookEvent, HookPoint, Pass, Rewrite, ToolEnded, ToolProposed
from geode.hooks.vocabulary import Vocabulary

WORDS = Vocabulary()


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return "asyncio", {}  # commands take real time


def place(folder: Path, **environment: str) -> CommandPlace:
    return CommandPlace(
        session_id="01S",
        mode="repl",
        workspace=folder,
        timeline=folder / "timeline.jsonl",
        environment={"PATH": os.defpath, **environment},
    )


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().split()[2]
    except FileNotFoundError:
        return False
    return state != "Z"


async def asked(folder: Path, command: str, event: HookEvent, matcher: str = "") -> Decision:
    entry = CommandEntry(name="h", point=HookPoint.PRE_TOOL_USE, command=command, time_limit_s=5.0, matcher=matcher)
    return await CommandHook(entry, place(folder), WORDS).decide(event)


def proposed(tool: str, **arguments: Any) -> ToolProposed:
    return ToolProposed(tool=tool, level=SafetyLevel.WRITE, arguments=arguments)


async def test_a_command_is_told_the_call_in_the_words_that_existing_hooks_read(tmp_path: Path) -> None:
    await asked(tmp_path, "cat > told.json", proposed("write_file", path="/workspace/a/b.txt", content="x"))
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {
        "session_id": "01S",
        "transcript_path": str(tmp_path / "timeline.jsonl"),
        "cwd": str(tmp_path),
        "permission_mode": "repl",
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": str(tmp_path / "a" / "b.txt"), "content": "x"},
    }


@pytest.mark.parametrize(
    ("matcher", "tool", "ran"),
    [
        ("Bash", "shell", True),
        ("shell", "shell", True),
        ("Bash|Edit", "edit_file", True),
        ("mcp__.*", "mcp__files__read", True),
        ("*", "look", True),
        ("", "look", True),
        ("Bas", "shell", False),
        ("Write", "shell", False),
    ],
)
async def test_a_matcher_means_a_tool_by_either_name(tmp_path: Path, matcher: str, tool: str, ran: bool) -> None:
    decision = await asked(tmp_path, "exit 2", proposed(tool), matcher)
    assert isinstance(decision, Block if ran else Pass)


async def test_a_rewrite_comes_back_in_our_keys_and_paths(tmp_path: Path) -> None:
    answer = {"hookSpecificOutput": {"updatedInput": {"file_path": str(tmp_path / "c.txt"), "content": "y"}}}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    decision = await asked(tmp_path, "cat answer.json", proposed("write_file", path="b.txt", content="x"))
    assert isinstance(decision, Rewrite)
    assert decision.arguments == {"path": "c.txt", "content": "y"}
    answer["hookSpecificOutput"]["updatedInput"]["mode"] = "0777"
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    with pytest.raises(NoAnswer, match=r"updatedInput\.mode is no key of Write"):
        await asked(tmp_path, "cat answer.json", proposed("write_file", path="b.txt", content="x"))


@given(tool=st.sampled_from(["shell", "read_file", "write_file", "edit_file", "search", "list_files"]), data=st.data())
def test_there_and_back_a_call_is_the_same(tool: str, data: st.DataObject) -> None:
    """A hook that changes nothing must change nothing."""
    keys = {
        "shell": ["command", "timeout_s"],
        "read_file": ["path", "start_line", "line_count"],
        "write_file": ["path", "content"],
        "edit_file": ["path", "old", "new"],
        "search": ["pattern", "path", "glob"],
        "list_files": ["path"],
    }[tool]
    values = {
        "path": st.from_regex(r"[a-z]{1,5}(/[a-z.]{1,5}x){0,2}", fullmatch=True),
        "timeout_s": st.integers(1, 600),
    }
    arguments = {key: data.draw(values.get(key, st.text(max_size=5))) for key in keys}
    event, folder = proposed(tool, **arguments), Path("/somewhere/else")
    told = WORDS.event(event, folder)["tool_input"]
    assert isinstance(told, dict)
    back = WORDS.decision(Rewrite(arguments=told, reason="r"), event, folder)
    assert isinstance(back, Rewrite)
    assert back.arguments == arguments


async def test_a_command_sees_only_the_environment_that_it_is_given(tmp_path: Path, monkeypatch: Any) -> None:
    """R40: every child inherited the provider's key once."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zx-canary-0123456789")
    end = await run_command("env", "", place(tmp_path, LANG="C.UTF-8"), 5.0)
    assert "zx-canary" not in end.stdout
    assert "LANG=C.UTF-8" in end.stdout


async def test_what_a_command_leaves_running_is_ended_with_it_and_is_not_waited_for(tmp_path: Path) -> None:
    """R33: a hook that hangs in the background must hold neither the call nor the machine."""
    began = time.monotonic()
    end = await run_command("sleep 60 & echo $! > pid; exit 0", "", place(tmp_path), 30.0)
    assert (end.exit_code, time.monotonic() - began < 10) == (0, True)
    pid = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 5  # its pipes are closed a moment before it is gone
    while running(pid) and time.monotonic() < until:  # noqa: ASYNC110  (another process tells nobody that it is gone)
        await asyncio.sleep(0.01)
    assert not running(pid)


async def test_a_command_need_not_read_what_it_is_told(tmp_path: Path) -> None:
    assert (await run_command("exit 0", "x" * 1_000_000, place(tmp_path), 5.0)).exit_code == 0


async def test_a_post_hook_is_told_the_result(tmp_path: Path) -> None:
    event = ToolEnded(tool="shell", level=SafetyLevel.EXECUTE, arguments={"command": "ls"}, text="a", is_error=True)
    told = WORDS.event(event, tmp_path)
    assert (told["tool_name"], told["tool_response"]) == ("Bash", {"text": "a", "is_error": True})
