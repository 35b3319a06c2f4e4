"""Names in a configuration, against what is registered: hooks, tools, models, suites, sinks."""

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points

from pydantic import JsonValue

from experiments.overrides import nearest
from experiments.run_spec import Problem, RunSpec
from experiments.suites.loader import ENTRY_POINT_GROUP, suite_names
from geode.hooks.library import build_hooks
from geode.llm.admission import check_role
from geode.llm.errors import ConfigurationError
from geode.llm.routes import ARCHIVED
from geode.serve.catalogues import HOOKS_GROUP, hook_code, hook_factories, hook_names, tool_names
from geode.tools.delegate import NAME as DELEGATE

SINKS_GROUP = "geode.sinks"


def unknown_names(spec: RunSpec) -> list[Problem]:
    """Return a problem for each name that nothing is registered under, with the nearest one that is."""
    return list(_unknown(spec))


def with_hook_code(spec: RunSpec) -> RunSpec:
    """Return the cell with the code of packages' hooks in its scaffold: a changed hook is another scaffold."""
    hooks = tuple(hook.model_copy(update={"code": hook_code(hook.name)}) for hook in spec.scaffold.hooks)
    return spec.model_copy(update={"scaffold": spec.scaffold.model_copy(update={"hooks": hooks})})


def sink_names() -> tuple[str, ...]:
    """Return the names of the sinks that are installed."""
    return tuple(sorted({entry.name for entry in entry_points(group=SINKS_GROUP)}))


def installed_choices() -> Mapping[str, Mapping[str, Mapping[str, JsonValue]]]:
    """Return by group and name what selecting a hook or suite of an installed package adds to the configuration.

    No package is imported: only what is selected is, and whatever is wrong with it is then that command's to say.
    """
    return {
        "hooks": {entry.name: {entry.name: {}} for entry in entry_points(group=HOOKS_GROUP)},
        "suite": {entry.name: {"name": entry.name, "tasks": None} for entry in entry_points(group=ENTRY_POINT_GROUP)},
    }


def _unknown(spec: RunSpec) -> Iterator[Problem]:
    for hook in spec.scaffold.hooks:
        try:
            if hook.name not in hook_names():
                text = f"there is no such hook{nearest(hook.name, hook_names())}"
                yield Problem(path=f"hooks.{hook.name}", text=text)
                continue
            build_hooks((hook,), hook_factories())
        except ValueError as error:
            yield Problem(path=f"hooks.{hook.name}", text=str(error))
    for tool in spec.scaffold.tools.tools:
        if tool.name not in tool_names():
            yield Problem(path=f"tools.{tool.name}", text=f"there is no such tool{nearest(tool.name, tool_names())}")
    if DELEGATE in {tool.name for tool in spec.scaffold.tools.tools} and not spec.scaffold.sub_agents:
        text = "it has nobody to delegate to; name somebody with +sub_agents.NAME.tools=[...]"
        yield Problem(path=f"tools.{DELEGATE}", text=text)
    if os.sep not in spec.suite.name and spec.suite.name not in suite_names():
        text = f"there is no suite {spec.suite.name!r}{nearest(spec.suite.name, suite_names())}"
        yield Problem(path="suite.name", text=f"{text}; a suite of yours is given by its folder, as suite=./my_suite")
    for sink in spec.sinks:
        if sink not in sink_names():
            text = f"there is no sink {sink!r}{nearest(sink, sink_names())}"
            yield Problem(path="tracking.sinks", text=text)
    for role, model in spec.roles.items():
        if model in ARCHIVED:
            continue  # a known name; a plan shows how many episodes are refused for it, and why
        try:
            check_role(role, model)
        except ConfigurationError as error:
            yield Problem(path=f"role.{role}.model", text=str(error))
