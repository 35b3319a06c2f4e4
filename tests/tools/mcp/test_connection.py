"""A server may do what it likes with its end of the pipe: a call has one honest end, and nothing is left behind."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from geode.tools.mcp.manager import MCPServerManager
from geode.tools.mcp.session import CallUnanswered
from geode.tools.mcp.sources import ConfiguredServer
from geode.tools.mcp.trust import TrustStore
from geode.tools.spec import ToolFailed, ToolOutput
from tests.doubles.mcp_servers import PROJECT, Started, started, wire_server


async def echo(server: Started, limit_s: float = 10.0) -> ToolOutput:
    return await asyncio.wait_for(server.specs["odd__echo"].handler({}), limit_s)


async def ended(pid: int) -> None:
    """Wait until the process is dead; the kernel needs a moment."""
    async with asyncio.timeout(2):
        while is_alive(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


async def test_noise_before_the_first_message_is_skipped_and_told_once(tmp_path: Path) -> None:
    """R43: a banner, a BOM, half a message, JSON that is none, and 9 MB in one line."""
    async with started(tmp_path, wire_server(tmp_path, "banner")) as server:
        assert (await echo(server)).text == "hello"
        assert server.notes == [
            "MCP server 'odd': it printed a line that is no message where only messages belong; such lines are skipped"
        ]


async def test_entries_that_are_no_tools_cost_only_themselves(tmp_path: Path) -> None:
    """One bad entry makes the SDK refuse the whole page."""
    async with started(tmp_path, wire_server(tmp_path, "odd entries")) as server:
        assert {row.tool: row.standing.value for row in server.manager.rows} == {
            "bare": "not declared",
            "null": "not declared",
            "liar": "not declared",
            "echo": "ready",
        }
        assert (await echo(server)).text == "hello"


async def test_a_schema_of_2000_levels_costs_only_its_own_tool(tmp_path: Path) -> None:
    """R45, over a real pipe."""
    settings = wire_server(
        tmp_path,
        "deep",
        tools={"echo": {"level": "read", "data_class": "none"}, "abyss": {"level": "read", "data_class": "none"}},
    )
    async with started(tmp_path, settings) as server:
        (abyss,) = server.manager.set_aside
        assert (abyss.tool, "cannot be used" in abyss.detail) == ("abyss", True)
        assert list(server.specs) == ["odd__echo"]


async def test_600_tools_offer_no_more_than_fits_beside_our_own(tmp_path: Path) -> None:
    """R44: past 128 tools a provider refuses every request; what is left out is counted and named."""
    tools = {f"tool{n}": {"level": "read", "data_class": "none"} for n in range(600)}
    async with started(tmp_path, wire_server(tmp_path, "many", tools=tools)) as server:
        offer = server.manager.offer()
        assert len(offer.specs) == 100
        assert len(server.manager.set_aside) == 500
        assert {row.standing.value for row in server.manager.set_aside} == {"too many"}


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [("endless pages", "gives the page 'again' for ever"), ("silent", "was not ready within 0.5 s")],
)
async def test_a_server_that_cannot_be_used_is_named_and_ended(tmp_path: Path, behaviour: str, told: str) -> None:
    """R44: a list without end, and a server that never answers: start-up is not blocked."""
    async with started(
        tmp_path, wire_server(tmp_path, behaviour, start_timeout_s=0.5 if behaviour == "silent" else 10)
    ) as server:
        assert told in server.manager.unusable["odd"]
        assert told in server.notes[0]
        assert "logs/odd.log" in server.manager.unusable["odd"]
        assert server.manager.offer().specs == ()


async def test_a_server_that_hangs_costs_the_others_nothing(tmp_path: Path) -> None:
    """Start-up waits for each its own time, and goes on with those that are there."""
    notes: list[str] = []
    servers = [
        ConfiguredServer(name=name, source=tmp_path / "mcp.yaml", folder=PROJECT, settings=settings)
        for name, settings in (
            ("hangs", wire_server(tmp_path, "silent", start_timeout_s=0.5)),
            ("works", wire_server(tmp_path, "plain")),
        )
    ]
    trust = TrustStore(tmp_path / "trust.json")
    async with MCPServerManager(servers, trust=trust, ours={}, logs=tmp_path / "logs", note=notes.append) as manager:
        (row,) = manager.rows
        assert row.listed is not None
        trust.approve(row.server.key, {"echo": row.listed.as_approved})
        (spec,) = manager.offer().specs
        assert spec.name == "works__echo"
        assert (await spec.handler({})).text == "hello"
    assert list(manager.unusable) == ["hangs"]
    assert len(notes) == 1


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The first mistake of everybody."""
    settings = wire_server(tmp_path, "x").model_copy(update={"command": ("no-such-program-at-all",)})
    async with started(tmp_path, settings) as server:
        assert "no-such-program-at-all: No such file" in server.manager.unusable["odd"]


async def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    """Better than a server that starts without its key and fails later."""
    settings = wire_server(tmp_path, "x", environment_from={"KEY": "NO_SUCH_VARIABLE"})
    async with started(tmp_path, settings) as server:
        assert "NO_SUCH_VARIABLE from the environment, where it is not set" in server.manager.unusable["odd"]


@pytest.mark.parametrize("behaviour", ["closes its output", "leaves a child"])
async def test_a_server_that_is_gone_in_mid_call_is_noticed_within_two_seconds(tmp_path: Path, behaviour: str) -> None:
    """R42: it closed its output but lives, or it died while a child of its own holds the pipe open."""
    async with started(tmp_path, wire_server(tmp_path, behaviour)) as server:
        began = time.monotonic()
        with pytest.raises(CallUnanswered, match="Connection closed"):
            await echo(server)
        assert time.monotonic() - began < 2
        assert server.effects == [behaviour], "it was asked once"


async def test_what_a_dead_server_had_started_is_ended_too(tmp_path: Path) -> None:
    """The process group, not the process."""
    async with started(tmp_path, wire_server(tmp_path, "leaves a child")) as server:
        with pytest.raises(CallUnanswered):
            await echo(server)
    await ended(int((tmp_path / "child").read_text()))


async def test_a_server_that_ignores_every_request_to_end_is_killed(tmp_path: Path) -> None:
    """Neither the end of its input nor SIGTERM moves it."""
    async with started(tmp_path, wire_server(tmp_path, "deaf")) as server:
        assert (await echo(server)).text == "hello"
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert server.manager.offer().specs, "what was offered is still known"


async def test_a_dead_server_is_started_again_for_the_next_call_and_no_more_often_than_allowed(tmp_path: Path) -> None:
    """R42: reconnecting is for the next call, is counted, and ends."""
    async with started(tmp_path, wire_server(tmp_path, "leaves a child", restarts_max=1)) as server:
        for _ in range(2):
            with pytest.raises(CallUnanswered):
                await echo(server)
        with pytest.raises(ToolFailed, match="not started more than 1 times again"):
            await echo(server)
        assert len(server.effects) == 2


async def test_a_server_that_comes_back_with_other_tools_is_not_called_by_the_old_plan(tmp_path: Path) -> None:
    """A08: dying is one more way to change a tool that was approved."""
    async with started(tmp_path, wire_server(tmp_path, "comes back different")) as server:
        frozen = server.specs["odd__echo"].handler
        with pytest.raises(CallUnanswered):
            await frozen({})
        with pytest.raises(ToolFailed, match="has changed the tool 'echo'"):
            await frozen({})
        assert len(server.effects) == 1
        assert server.manager.generation == 2
        assert server.specs == {}


async def test_calls_side_by_side_start_a_dead_server_once(tmp_path: Path) -> None:
    """Two calls that find it dead must not each start one of their own."""
    async with started(tmp_path, wire_server(tmp_path, "leaves a child")) as server:
        with pytest.raises(CallUnanswered):
            await echo(server)
        ends = await asyncio.gather(*(echo(server) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(end, CallUnanswered) for end in ends)
        assert server.notes.count("MCP server 'odd': it had ended, and was started again for this call") == 1


async def test_a_cancelled_call_ends_at_once_although_the_server_reads_nothing(tmp_path: Path) -> None:
    """The executor's patience is two seconds; a full pipe must not use it up."""
    async with started(tmp_path, wire_server(tmp_path, "stops reading")) as server:
        call = server.specs["odd__echo"].handler
        first = asyncio.ensure_future(call({}))
        while not server.effects:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        second = asyncio.ensure_future(call({"filler": "x" * 1_000_000}))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        for task in (first, second):
            task.cancel()
        await asyncio.wait({first, second})
        assert time.monotonic() - began < 1
        assert len(server.effects) == 1


async def test_progress_extends_nothing(tmp_path: Path) -> None:
    """A server that reports progress for ever would hold a session for ever."""
    async with started(tmp_path, wire_server(tmp_path, "progresses")) as server:
        with pytest.raises(TimeoutError):
            await echo(server, limit_s=0.3)


async def test_a_question_of_the_server_is_declined_and_told(tmp_path: Path) -> None:
    """A10: no form of a server's is shown to anybody, and no secret is typed into one."""
    async with started(tmp_path, wire_server(tmp_path, "asks")) as server:
        assert "declined" in (await echo(server)).text
        assert server.notes == ["MCP server 'odd': it asked for elicitation/create, which is always declined"]


async def test_an_answer_to_a_call_that_was_never_made_is_ignored(tmp_path: Path) -> None:
    """A result of one call is never attached to another."""
    async with started(tmp_path, wire_server(tmp_path, "forges")) as server:
        assert (await echo(server)).text == "yours"


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [("answers nonsense", "its answer is malformed"), ("fails inside", "boom")],
)
async def test_an_answer_that_does_not_tell_how_the_call_ended_leaves_it_open(
    tmp_path: Path, behaviour: str, told: str
) -> None:
    """An internal error may have come in the middle of the work."""
    async with started(tmp_path, wire_server(tmp_path, behaviour)) as server:
        with pytest.raises(CallUnanswered, match=told):
            await echo(server)


async def test_a_refusal_of_the_server_is_an_error_that_the_model_can_read(tmp_path: Path) -> None:
    """It is an answer: nobody has to look after it."""
    async with started(tmp_path, wire_server(tmp_path, "refuses")) as server:
        assert await echo(server) == ToolOutput(text="the server refuses this call: bad text (-32602)", is_error=True)


async def test_a_list_that_changes_without_end_is_not_followed_for_ever(tmp_path: Path) -> None:
    """A30: the server is given up, and the process goes on."""
    async with started(tmp_path, wire_server(tmp_path, "restless")) as server:
        connection = server.manager._connections["odd"]
        assert connection._owner is not None
        await asyncio.wait({connection._owner}, timeout=10)
        assert "it changed its list of tools 50 times" in server.notes[-1]


async def test_what_a_server_prints_is_kept_without_our_secrets_and_within_a_bound(tmp_path: Path) -> None:
    """R40: its standard error goes to a file, never to the terminal."""
    ours = {"SOME_KEY": "s3cret-value-of-a-key", "HOME": "/home/me"}
    async with started(tmp_path, wire_server(tmp_path, "chatty"), ours=ours) as server:
        assert (await echo(server)).text == "hello"
    assert server.log.startswith("token=[redacted]\n")
    assert len(server.log) < 1_100_000


def environment_of(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


async def test_no_variable_of_ours_reaches_a_server_but_by_its_settings(tmp_path: Path) -> None:
    """R40: the allow-list is short, and holds no key."""
    settings = wire_server(tmp_path, "x", environment_from={"DATABASE": "OUR_DB"}, environment={"MODE": "test"})
    ours = {"OUR_DB": "db", "ANTHROPIC_API_KEY": "canary", "GEODE_HOME": "x", "PATH": os.environ["PATH"], "HOME": "/h"}
    async with started(tmp_path, settings, ours=ours) as server:
        await echo(server)
        (pid,) = _children()
        environ = environment_of(pid)
    names = {entry.partition(b"=")[0].decode() for entry in environ if entry}
    assert names <= {"DATABASE", "MODE", "PATH", "HOME", "LC_CTYPE"}
    assert {"DATABASE", "MODE"} <= names


def _children() -> list[int]:
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    mark = str(PROJECT / "tests" / "doubles" / "mcp_wire.py").encode()
    return [pid for pid in map(int, path.read_text().split()) if mark in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def test_leaving_the_manager_by_an_error_ends_its_servers(tmp_path: Path) -> None:
    """However a session ends."""

    async def failing() -> None:
        async with started(tmp_path, wire_server(tmp_path, "x")):
            assert len(_children()) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert _children() == []
