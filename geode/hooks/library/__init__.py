"""Hooks that come with GEODE, by name. Each is one small class; its texts are what the model reads."""

from collections.abc import Mapping

from geode.hooks.library.building import HookFactory, UnknownHook, build_hooks, factory
from geode.hooks.library.protect_tests import ProtectTests, ProtectTestsOptions
from geode.hooks.library.refuse_dangerous import RefuseDangerous
from geode.hooks.library.refuse_new_files import RefuseNewFiles
from geode.hooks.library.remind_of_errors import RemindOfErrors
from geode.hooks.library.require_evidence import RequireEvidence
from geode.hooks.library.require_plan import RequirePlan
from geode.hooks.library.require_read import RequireRead
from geode.hooks.library.require_test_run import RequireTestRun, RequireTestRunOptions
from geode.hooks.library.review_changes import ReviewChanges
from geode.hooks.library.review_request import ReviewRequest
from geode.hooks.library.show_effort import ShowEffort
from geode.hooks.library.show_files import ShowFiles
from geode.hooks.library.stop_repeats import StopRepeats, StopRepeatsOptions
from geode.hooks.library.trim_results import TrimResults

__all__ = [
    "ABLATED",
    "LIBRARY",
    "HookFactory",
    "ProtectTests",
    "ProtectTestsOptions",
    "RequireTestRun",
    "RequireTestRunOptions",
    "StopRepeats",
    "StopRepeatsOptions",
    "UnknownHook",
    "build_hooks",
]

ABLATED: Mapping[str, HookFactory] = {
    kind.name: factory(kind, kind.options_type) for kind in (RequireTestRun, ProtectTests, StopRepeats)
}
"""The first three: the ablation of the demo, whose worth to the simulated worker is measured."""

LIBRARY: Mapping[str, HookFactory] = {
    **ABLATED,
    RefuseDangerous.name: factory(RefuseDangerous, RefuseDangerous.options_type),
    RefuseNewFiles.name: factory(RefuseNewFiles, RefuseNewFiles.options_type),
    RemindOfErrors.name: factory(RemindOfErrors, RemindOfErrors.options_type),
    RequireEvidence.name: factory(RequireEvidence, RequireEvidence.options_type),
    RequirePlan.name: factory(RequirePlan, RequirePlan.options_type),
    RequireRead.name: factory(RequireRead, RequireRead.options_type),
    ReviewChanges.name: factory(ReviewChanges, ReviewChanges.options_type),
    ReviewRequest.name: factory(ReviewRequest, ReviewRequest.options_type),
    ShowEffort.name: factory(ShowEffort, ShowEffort.options_type),
    ShowFiles.name: factory(ShowFiles, ShowFiles.options_type),
    TrimResults.name: factory(TrimResults, TrimResults.options_type),
}
"""Every hook that comes with GEODE."""
