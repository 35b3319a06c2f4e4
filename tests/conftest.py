"""What all tests share: the async backend, and the place of the material that users do not have."""

from pathlib import Path

import pytest


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
