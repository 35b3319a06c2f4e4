"""One double for all tests of its package, and the real SDKs pointed at it; each test plays its own script."""

import os
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from geode.dev.fake_provider.script import Script
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or a proxy of the developer must not reach an SDK."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_", "OPENROUTER_", "ZAI_", "TYPESAFE_")) or name.lower().endswith(
            "_proxy"
        ):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def running() -> Iterator[FakeProvider]:
    with FakeProvider() as double:
        yield double


@pytest.fixture
def double(running: FakeProvider) -> FakeProvider:
    running.play(Script())
    return running


@pytest.fixture
def claude(double: FakeProvider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        api_key=double.key(Route.ANTHROPIC), base_url=double.base_url(Route.ANTHROPIC), max_retries=0
    ) as client:
        yield client


@pytest.fixture
def clients(double: FakeProvider) -> Iterator[dict[Route, openai.OpenAI]]:
    """The OpenAI SDK on each route that it serves."""
    routes = (Route.OPENAI, Route.OPENAI_CODEX, Route.OPENROUTER, Route.ZAI)
    made: dict[Route, Any] = {
        route: openai.OpenAI(api_key=double.key(route), base_url=double.base_url(route), max_retries=0)
        for route in routes
    }
    yield made
    for client in made.values():
        client.close()
