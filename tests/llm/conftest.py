"""One double for all tests of the wires; each test plays its own script. Nothing of the developer's reaches an SDK."""

import os
from collections.abc import Iterator

import pytest

from geode.dev.fake_provider.script import Script
from geode.dev.fake_provider.server import FakeProvider

_PROVIDERS = ("ANTHROPIC_", "OPENAI_", "OPENROUTER_", "ZAI_", "TYPESAFE_")


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_developer() -> Iterator[None]:
    """PROVIDERS 6 (traps a, e): a key, an address or a proxy of the developer would reach an SDK by itself."""
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
