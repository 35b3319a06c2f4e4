"""Hooks that come with GEODE, by name. Each is one small class; its texts are what the model reads."""

from collections.abc import Mapping

from geode.hooks.library.building import HookFactory, UnknownHook, build_hooks, factory
from geode.hooks.library.protect_tests import ProtectTests, ProtectTestsOptions
from geode.hooks.library.require_test_run import RequireTestRun, RequireTestRunOptions
from geode.hooks.library.stop_repeats import StopRepeats, StopRepeatsOptions

__all__ = [
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

LIBRARY: Mapping[str, HookFactory] = {
    kind.name: factory(kind, kind.options_type) for kind in (RequireTestRun, ProtectTests, StopRepeats)
}
