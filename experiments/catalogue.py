"""Names in a configuration, against what is registered: hooks, tools, models, suites, sinks."""

import os
from collections.abc import Iterator
from importlib.metadata import entry_points

from experiments.overrides import nearest
from experiments.run_spec import Problem, RunSpec
from experiments.suites.loader import suite_names
from geode.hooks.library import build_hooks
from geode.llm.errors import ConfigurationError
from geode.serve.catalogues import check_model, hook_factories, hook_names, tool_names

SINKS_GROUP = "geode.sinks"


def unknown_names(spec: RunSpec) -> list[Problem]:
    """Return a problem for each name that nothing is registered under, with the nearest one that is."""
    return list(_unknown(spec))


def sink_names() -> tuple[str, ...]:
    """Return the names of the sinks that are installed."""
    return tuple(sorted({entry.name for entry in entry_points(group=SINKS_GROUP)}))


def _unknown(spec: RunSpec) -> Iterator[Problem]:
    for hook in spec.scaffold.hooks:
        if hook.name not in hook_names():
            yield Problem(path=f"hooks.{hook.name}", text=f"there is no such hook{nearest(hook.name, hook_names())}")
            continue
        try:
            build_hooks((hook,), hook_factories())
        except ValueError as error:
            yield Problem(path=f"hooks.{hook.name}", text=str(error))
    for tool in spec.scaffold.tools.tools:
        if tool.name not in tool_names():
            yield Problem(path=f"tools.{tool.name}", text=f"there is no such tool{nearest(tool.name, tool_names())}")
    if os.sep not in spec.suite.name and spec.suite.name not in suite_names():
        text = f"there is no suite {spec.suite.name!r}{nearest(spec.suite.name, suite_names())}"
        yield Problem(path="suite.name", text=text)
    for sink in spec.sinks:
        if sink not in sink_names():
            text = f"there is no sink {sink!r}{nearest(sink, sink_names())}"
            yield Problem(path="tracking.sinks", text=text)
    for role, model in spec.roles.items():
        try:
            check_model(model, role)
        except ConfigurationError as error:
            yield Problem(path=f"role.{role}.model", text=str(error))
