"""Tests against the providers themselves: they cost money, so they run only if somebody asks for them by `-m live`.

They alone may open a connection to another host.
"""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out unless they are asked for, whatever else is selected."""
    asked_for = "live" in str(config.option.markexpr).split()
    live = [item for item in items if item.get_closest_marker("live")]
    if live and not asked_for:
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]
