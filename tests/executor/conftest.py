"""These tests run in virtual time, where waiting costs nothing, and with the real parts of a session around them."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from geode.tools.spec import ToolSpec
from tests.doubles.models import ScriptedModel
from tests.doubles.sessions import Bench, open_bench
from tests.doubles.virtual_time import BACKEND


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return BACKEND


BenchOpener = Callable[..., Bench]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[BenchOpener]:
    """Opens benches in the test's folder, one after the other, and closes the last one."""
    benches: list[Bench] = []

    def open_(*tools: ToolSpec, **parts: Any) -> Bench:
        for bench in benches:
            bench.close()
        benches[:] = [open_bench(tmp_path / "session", ScriptedModel([]), {tool.name: tool for tool in tools}, **parts)]
        return benches[0]

    yield open_
    for bench in benches:
        bench.close()
