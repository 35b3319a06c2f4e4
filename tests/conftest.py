"""What all tests share: the async backend, and the place of the material that users do not have."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow; that is no property of the code. What must be quick is measured under benchmarks/.
settings.register_profile("geode", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("geode")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded archives beside the project; tests that need it skip where it is absent."""
    folder = Path(__file__).parents[2] / "shared"
    if not (folder / "archive").is_dir():
        pytest.skip("the recorded archives (../shared) are not on this machine")
    return folder
