"""A real session on each wire: the loop with its stores, the one owner of retries, the real SDK, the strict double."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from geode.dev.fake_provider.script import Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.messages import Delta, Message
from geode.llm.retry import Retrying, RetryPolicy, Shown
from geode.tools.spec import ToolSpec
from tests.doubles.sessions import Bench, open_bench
from tests.doubles.wire import problems
from tests.llm.behaviour.wires import WIRES, Wire


@pytest.fixture(params=WIRES, ids=str)
def wire(request: pytest.FixtureRequest) -> Wire:
    found: Wire = request.param
    return found


class House:
    """Opens one session again and again, each time as another process would, on the same wire and double."""

    def __init__(self, folder: Path, wire: Wire, double: FakeProvider) -> None:
        self.wire = wire
        self.double = double
        self.seen: list[Delta] = []
        self.waited_s: list[float] = []
        self.watch: Callable[[Delta], None] = self.seen.append
        self._folder = folder
        self._bench: Bench | None = None

    def play(self, *steps: Step, **script: Any) -> None:
        self.double.play(Script(steps=steps, **script))

    def open(self, *tools: ToolSpec, policy: RetryPolicy | None = None, **parts: Any) -> Bench:
        self.close()
        binding, shown = self.wire.binding(self.double), Shown(self.watch)
        adapter = Retrying(
            inner=self.wire.make(binding, shown, None),
            binding=binding,
            policy=policy or RetryPolicy(jitter=0),
            shown=shown,
            sleep=self._slept,
        )
        self._bench = open_bench(self._folder, adapter, {tool.name: tool for tool in tools}, **parts)
        return self._bench

    def close(self) -> None:
        if self._bench is not None:
            assert problems(self._bench.checkpoint.load().messages, is_request=False) == []
            self._bench.close()
            self._bench = None

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation of the session that is open."""
        assert self._bench is not None
        return self._bench.loop.messages

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was sent, in order. No request was sent by an SDK of its own accord."""
        assert {request.headers["x-stainless-retry-count"] for request in self.double.requests} <= {"0"}
        return [request.body for request in self.double.requests]

    async def _slept(self, seconds: float) -> None:
        self.waited_s.append(seconds)


@pytest.fixture
def house(tmp_path: Path, wire: Wire, double: FakeProvider) -> Iterator[House]:
    house = House(tmp_path / "session", wire, double)
    yield house
    house.close()
