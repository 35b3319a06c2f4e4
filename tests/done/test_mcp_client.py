"""Done line 4: a real MCP server is used through the loop; killed in mid-call it gives *uncertain*, and no second call.

Also as a user does it: settings, `geode mcp-servers trust`, and `geode effects ls` afterwards.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from geode.events import CallEnd
from tests.doubles.mcp_house import House, results, server_pid
from tests.doubles.mcp_servers import PROJECT
from tests.doubles.models import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

TOOLS = ("echo", "note", "transfer", "slow", "drive.search")


def bank(folder: Path, level: str = "write") -> House:
    """A house whose server counts its effects in `folder`."""
    server: dict[str, JsonValue] = {
        "transport": "stdio",
        "command": [sys.executable, "-m", "tests.doubles.mcp_server", str(folder)],
        "environment": {"PYTHONPATH": str(PROJECT)},
        "tools": {tool: {"level": level, "data_class": "none", "timeout_s": 5} for tool in TOOLS},
    }
    return House(folder, {"bank": server})


def effects(house: House) -> list[str]:
    return (house.folder / "effects").read_text().splitlines()


@pytest.fixture(scope="module")
def trusted_house(tmp_path_factory: pytest.TempPathFactory) -> House:
    house = bank(tmp_path_factory.mktemp("house"))
    trusted = house.geode("mcp-servers", "trust", "--yes")
    assert "5 tools approved" in trusted.out, trusted.err
    return house


@pytest.fixture
def house(trusted_house: House) -> House:
    (trusted_house.folder / "effects").unlink(missing_ok=True)
    return trusted_house


async def test_a_tool_of_a_server_is_used_through_the_loop(house: House) -> None:
    """The model sees the mapped name, its call runs the server's tool, and the receipt is like that of any tool."""
    model = ScriptedModel(
        [calls(("a", "bank__note", '{"text": "five"}'), ("b", "bank__echo", '{"text": 1}')), says("Noted.")]
    )
    await house.run(model, "01USED")
    names = [schema.name for schema in model.asked[0].tools]
    assert names[:4] == ["read_file", "bank__echo", "bank__note", "bank__transfer"]
    assert names[5].startswith("bank__drive_search-")
    noted, refused = results(model.asked[-1])
    assert noted.text == "note: five"
    assert "expected string, got 1" in refused.text, "the host checks the schema before anything is sent"
    assert effects(house) == ["note five"]
    listed = house.geode("effects", "ls", "01USED", "--all")
    assert "bank__note" in listed.out
    assert "succeeded" in listed.out


async def test_a_server_that_dies_in_mid_call_leaves_an_uncertain_effect_and_one_line(house: House) -> None:
    """It did its work and died before it answered: only whoever looks outside can know."""
    model = ScriptedModel([calls(("a", "bank__transfer", '{"text": "100"}')), says("I do not know.")])
    await house.run(model, "01DIED")
    (result,) = results(model.asked[-1])
    assert result.is_error
    assert "whether it took effect is unknown" in result.text
    assert effects(house) == ["transfer 100"], "nobody asked a second time"
    listed = house.geode("effects", "ls", "01DIED")
    assert "bank__transfer" in listed.out
    assert "uncertain" in listed.out


async def test_a_server_killed_from_outside_in_mid_call_leaves_an_uncertain_effect(house: House) -> None:
    """kill -9 of the server while its call is under way; the session goes on with a fresh one."""
    model = ScriptedModel(
        [calls(("a", "bank__slow", '{"seconds": 60}')), calls(("b", "bank__note", '{"text": "after"}')), says("Done.")]
    )

    async def kill_in_mid_call() -> None:
        while not (house.folder / "effects").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        os.kill(server_pid(str(house.folder)), signal.SIGKILL)

    await asyncio.gather(house.run(model, "01KILLED"), kill_in_mid_call())
    assert effects(house) == ["slow begins", "note after"]
    assert results(model.asked[-1])[0].text == "note: after"
    listed = house.geode("effects", "ls", "01KILLED").out
    assert listed.count("uncertain") == 1
    assert "bank__slow" in listed


async def test_a_call_over_its_time_is_uncertain_and_not_repeated(house: House) -> None:
    """The tool's own limit counts, whatever the server does."""
    model = ScriptedModel([calls(("a", "bank__slow", '{"seconds": 60}')), says("It took too long.")])
    await house.run(model, "01SLOW")
    assert "stopped after 5 s; whether it took effect is unknown" in results(model.asked[-1])[0].text
    assert effects(house) == ["slow begins"]
    assert CallEnd.UNCERTAIN.value in house.geode("effects", "ls", "01SLOW").out


async def test_without_approval_no_tool_is_there_and_nobody_is_asked(tmp_path: Path) -> None:
    """A08, A17: unattended never asks; it leaves out, and says so."""
    house = bank(tmp_path)
    model = ScriptedModel([calls(("a", "bank__note", '{"text": "five"}')), says("I cannot.")])
    await house.run(model, "01NONE")
    assert [schema.name for schema in model.asked[0].tools] == ["read_file"]
    assert "no tool is named 'bank__note'" in results(model.asked[-1])[0].text
    assert not (tmp_path / "effects").exists()


async def test_an_unattended_experiment_is_denied_what_is_external(tmp_path: Path) -> None:
    """Policy goes by the level that the owner declared."""
    house = bank(tmp_path, level="external")
    assert "5 tools approved" in house.geode("mcp-servers", "trust", "--yes").out
    model = ScriptedModel([calls(("a", "bank__note", '{"text": "five"}')), says("I may not.")])
    await house.run(model, "01EXTERNAL")
    assert "refused at policy" in results(model.asked[-1])[0].text
    assert not (tmp_path / "effects").exists()
