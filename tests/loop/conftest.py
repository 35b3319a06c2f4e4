"""These tests run in virtual time, where waiting costs nothing, and leave no session open."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from geode.tools.spec import ToolSpec
from tests.doubles.models import Reply, ScriptedModel
from tests.doubles.sessions import Bench, open_bench
from tests.doubles.virtual_time import BACKEND
from tests.doubles.wire import problems


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return BACKEND


SessionOpener = Callable[..., tuple[Bench, ScriptedModel]]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[SessionOpener]:
    """Opens the test's session with a script and tools, again and again; `folder` opens another one.

    In the end every request of every script must be one that a provider takes.
    """
    benches: dict[Path, Bench] = {}
    models: list[ScriptedModel] = []

    def open_(
        replies: Sequence[Reply], *tools: ToolSpec, folder: Path | None = None, **parts: Any
    ) -> tuple[Bench, ScriptedModel]:
        where = folder or tmp_path / "session"
        if where in benches:
            benches.pop(where).close()
        model = ScriptedModel(replies)
        models.append(model)
        benches[where] = open_bench(where, model, {tool.name: tool for tool in tools}, **parts)
        return benches[where], model

    yield open_
    for bench in benches.values():
        bench.close()
    for model in models:
        for asked in model.asked:
            paused = bool(asked.messages) and asked.messages[-1].role.value == "assistant"
            assert problems(asked.messages, is_request=not paused) == []
