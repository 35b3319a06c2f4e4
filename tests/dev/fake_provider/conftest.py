"""One double for all tests of its package, and the real SDKs pointed at it; each test plays its own script."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import anthropic
import openai
import pytest

from geode.dev.fake_provider.script import Script
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route

_PROVIDERS = ("ANTHROPIC_", "OPENAI_", "OPENROUTER_", "ZAI_", "TYPESAFE_")


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_developer() -> Iterator[None]:
    """A key or a proxy of the developer must not reach an SDK."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_PROVIDERS) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def running() -> Iterator[FakeProvider]:
    with FakeProvider() as double:
        yield double


@pytest.fixture
def double(running: FakeProvider) -> FakeProvider:
    running.play(Script())
    return running


@pytest.fixture(scope="session")
def claude(running: FakeProvider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        api_key=running.key(Route.ANTHROPIC), base_url=running.base_url(Route.ANTHROPIC), max_retries=0
    ) as client:
        yield client


@pytest.fixture(scope="session")
def clients(running: FakeProvider) -> Iterator[dict[Route, openai.OpenAI]]:
    """The OpenAI SDK on each route that it serves."""
    with ExitStack() as stack:
        yield {
            route: stack.enter_context(
                openai.OpenAI(api_key=running.key(route), base_url=running.base_url(route), max_retries=0)
            )
            for route in (Route.OPENAI, Route.OPENAI_CODEX, Route.OPENROUTER, Route.ZAI)
        }
