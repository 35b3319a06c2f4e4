"""One strict double of the providers for all tests of judges that ask a model; each test plays its own script."""

from collections.abc import Iterator

import pytest

from geode.dev.fake_provider.script import Script
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from judges.jev_wire import WAYS
from tests.judges.jev_house import House


@pytest.fixture(scope="session")
def running() -> Iterator[FakeProvider]:
    with FakeProvider() as double:
        yield double


@pytest.fixture
def double(running: FakeProvider) -> FakeProvider:
    running.play(Script())
    return running


@pytest.fixture(params=WAYS, ids=str)
def house(request: pytest.FixtureRequest, double: FakeProvider) -> House:
    """The engine `jev` on each of its routes."""
    route: Route = request.param
    return House(double, route)
