"""Which policy a session has: its mode, and what the operator's file and that of its project say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from geode.config.paths import StateRoot
from geode.executor.policy import Mode
from geode.executor.rules import PROJECT_FILE, PolicyFile, Rules, read_policy, read_project_policy
from geode.executor.rulings import Policy
from geode.tools.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Policies:
    """Makes the policy of each session. The operator's file is read once, a project's when a session opens in it."""

    root: StateRoot
    file: PolicyFile | None

    @classmethod
    def read(cls, root: StateRoot) -> Self:
        """Read the operator's file.

        Raises:
            PolicyError: if it cannot be used.
        """
        return cls(root, read_policy(root.policy))

    def of(self, mode: Mode, workspace: Path) -> Policy:
        """Return the policy of a session in `workspace`.

        Raises:
            PolicyError: if the project's file cannot be used.
        """
        place = Workspace(workspace)
        found = ((self.root.policy.name, self.file), (PROJECT_FILE, read_project_policy(place)))
        rules = Rules.of(mode, *((name, file) for name, file in found if file is not None))
        return Policy(mode, rules, own=self._own_in(place.root))

    def _own_in(self, workspace: Path) -> tuple[str, ...]:
        """Return what of the workspace is the state root: nothing, a folder, or all of it."""
        if not self.root.path.is_relative_to(workspace):
            return ()
        return ("**",) if self.root.path == workspace else (self.root.path.relative_to(workspace).as_posix(),)
