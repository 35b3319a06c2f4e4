"""Nobody has to close a client: it is shared within a loop, and closed with the loop or with its owner."""

import asyncio
import gc
import subprocess
import sys

from geode.llm.clients import PerLoop, is_loopback


class Client:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


class Owner:
    """Refers to itself, as whatever is caught in a traceback does."""

    def __init__(self) -> None:
        self.itself = self
        self.made: list[Client] = []
        self.clients = PerLoop(self.make)

    def make(self) -> Client:
        self.made.append(Client())
        return self.made[-1]


def test_a_loop_has_one_client_and_ends_it() -> None:
    """Connections are used again, and none is left to the next loop, where it would be of no use."""
    owner = Owner()

    async def twice() -> Client:
        assert await owner.clients.get() is await owner.clients.get()
        return await owner.clients.get()

    first, second = asyncio.run(twice()), asyncio.run(twice())
    assert first is not second
    assert [client.closed for client in owner.made] == [1, 1]


def test_a_client_is_closed_when_its_owner_goes() -> None:
    """A long loop that opens many sessions keeps the connections of those alone that are open."""

    async def lose_it() -> list[Client]:
        owner = Owner()
        made = owner.made
        await owner.clients.get()
        del owner
        gc.collect()
        for _ in range(5):
            await asyncio.sleep(0)
        assert [client.closed for client in made] == [1]
        return made

    assert [client.closed for client in asyncio.run(lose_it())] == [1]


def test_an_owner_that_outlives_its_loop_lets_go_in_peace() -> None:
    """Its client was closed with the loop."""
    owner = Owner()
    made = owner.made
    asyncio.run(owner.clients.get())
    del owner
    gc.collect()
    assert [client.closed for client in made] == [1]


def test_only_this_host_is_loopback() -> None:
    """A proxy of the environment is for all others."""
    assert is_loopback("http://127.0.0.1:8000/v1")
    assert is_loopback("http://[::1]:8000")
    assert not is_loopback("https://openrouter.ai/api/v1")


def test_naming_the_wires_loads_no_sdk() -> None:
    """`geode --help` names them too; each SDK takes half a second."""
    heavy = ("anthropic", "openai", "httpx2")
    code = f"import sys, geode.llm.opening; print([name for name in {heavy} if name in sys.modules])"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
