"""These tests run in virtual time: waiting costs nothing."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.doubles.virtual_time import BACKEND


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, Any]]:
    return BACKEND
