"""An installed package with two hooks for sweeps that have to take their time, or to lose a process.

`slow` waits before each call, as a model would let it wait. `deadly` kills the process that asks it.
"""

from pathlib import Path

_CODE = """
import asyncio
import os
import signal
from typing import Annotated

from pydantic import Field

from geode.hooks.library.building import factory
from geode.hooks.library.options import HookOptions
from geode.hooks.points import HookPoint, Pass


class SlowOptions(HookOptions):
    seconds: Annotated[float, Field(gt=0)] = 0.1


class Slow:
    name = "slow"
    points = frozenset({HookPoint.PRE_TOOL_USE})
    time_limit_s = 60.0

    def __init__(self, options):
        self._seconds = options.seconds

    async def decide(self, event):
        await asyncio.sleep(self._seconds)
        return Pass()

    def snapshot(self):
        return None

    def restore(self, memory):
        pass


class Deadly(Slow):
    name = "deadly"

    async def decide(self, event):
        os.kill(os.getpid(), signal.SIGKILL)


slow = factory(Slow, SlowOptions)
deadly = factory(Deadly, SlowOptions)
"""


def install_hooks(site: Path) -> dict[str, str]:
    """Install the package into `site`; return what a command needs in its environment to see it."""
    metadata = site / "some_hooks-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: some-hooks\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(
        "[geode.hooks]\nslow = some_hooks:slow\ndeadly = some_hooks:deadly\n", encoding="utf-8"
    )
    (site / "some_hooks.py").write_text(_CODE, encoding="utf-8")
    return {"PYTHONPATH": str(site)}
