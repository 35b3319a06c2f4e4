"""Which policy and which sandbox a session has: its mode, and what the operator's file and that of its project say."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.config.paths import StateRoot
from geode.executor.policy import Authority, Mode
from geode.executor.rules import PROJECT_FILE, ModePolicy, PolicyFile, Rules, read_policy, read_project_policy
from geode.executor.rulings import Policy
from geode.executor.shell.command import read_command
from geode.llm.errors import ConfigurationError
from geode.tools.catalogue import workspace_tools
from geode.tools.environment import LOCAL, Environment
from geode.tools.sandbox import SandboxUse, bubblewrap, why_no_sandbox
from geode.tools.workspace import Workspace

_UNATTENDED = frozenset({Mode.DAEMON, Mode.MCP, Mode.EXPERIMENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Whether what a session executes is in the sandbox, and whether that has a network."""

    use: SandboxUse
    network: bool


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

    def rules(self, mode: Mode, workspace: Workspace) -> Rules:
        """Return the rules of a session in `workspace`.

        Raises:
            PolicyError: if the project's file cannot be used.
        """
        found = ((self.root.policy.name, self.file), (PROJECT_FILE, read_project_policy(workspace)))
        return Rules.of(mode, *((name, file) for name, file in found if file is not None))

    def of(self, mode: Mode, workspace: Path, *, confined: bool = True) -> Policy:
        """Return the policy of a session in `workspace`; `confined` says whether its commands run in a sandbox.

        Raises:
            PolicyError: if the project's file cannot be used.
        """
        place = Workspace(workspace)
        return Policy(mode, self.rules(mode, place), own=self._own_in(place.root), confined=confined)

    def confinement(self, mode: Mode, workspace: Path) -> Confinement:
        """Return how a session in `workspace` is confined: as the operator says, or tighter if its project says so.

        Raises:
            PolicyError: if the project's file cannot be used.
        """
        own, project = (
            file.modes.get(mode, ModePolicy()) if file else ModePolicy()
            for file in (self.file, read_project_policy(Workspace(workspace)))
        )
        order = (SandboxUse.OFF, SandboxUse.AUTO, SandboxUse.REQUIRE)
        usual = SandboxUse.OFF if mode is Mode.EXPERIMENT else SandboxUse.AUTO
        use = max(own.sandbox or usual, project.sandbox or SandboxUse.OFF, key=order.index)
        network = mode not in _UNATTENDED if own.network is None else own.network
        return Confinement(use=use, network=network and project.network is not False)

    def environment(self, mode: Mode, workspace: Path, given: Environment | None) -> Environment:
        """Return where a session in `workspace` executes: in the environment that it is given, or as it is confined.

        Raises:
            ConfigurationError: if it must be in a sandbox, and there is none.
            PolicyError: if the project's file cannot be used.
        """
        confinement = self.confinement(mode, workspace)
        if given is None and confinement.use is not SandboxUse.OFF and not why_no_sandbox():
            return bubblewrap(network=confinement.network)
        chosen = given or LOCAL
        if confinement.use is SandboxUse.REQUIRE and chosen.definition is None:
            why = "this session executes outside of one" if given else why_no_sandbox()
            raise ConfigurationError(
                f"a sandbox is required in {mode} mode (modes.{mode}.sandbox in {self.root.policy}, or in the"
                f" {PROJECT_FILE} of the project), and {why}"
            )
        return chosen

    def _own_in(self, workspace: Path) -> tuple[str, ...]:
        """Return what of the workspace is the state root: nothing, a folder, or all of it."""
        if not self.root.path.is_relative_to(workspace):
            return ()
        return ("**",) if self.root.path == workspace else (self.root.path.relative_to(workspace).as_posix(),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What policy would answer, and what it saw."""

    mode: Mode
    authority: Authority
    reason: str
    rule: str
    level: SafetyLevel
    runs: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as JSON values."""
        return {
            "schema": "geode.policy_check/1",
            "mode": self.mode.value,
            "answer": self.authority.value,
            "reason": self.reason,
            "rule": self.rule,
            "level": self.level.name.lower(),
            "runs": list(self.runs),
        }

    def lines(self) -> Iterator[str]:
        """Yield it as a person reads it."""
        yield f"{self.authority.upper()} in {self.mode} mode, level {self.level.name.lower()}"
        yield f"because  {self.reason}"
        if self.authority is Authority.ASK and self.mode in _UNATTENDED:
            yield "         and where nobody attends, asking is refusing"
        if self.rule:
            yield f"rule     {self.rule}"
        yield from (f"runs     {command}" for command in self.runs)


def explain(policies: Policies, mode: Mode, workspace: Path, tool: str, what: str) -> Explanation:
    """Say what policy would answer to `tool` with the command or the path `what`.

    Raises:
        PolicyError: if the project's file cannot be used.
        KeyError: if there is no such tool, with the names of those that there are.
    """
    tools = workspace_tools(Workspace(workspace))
    if tool not in tools:
        raise KeyError(", ".join(tools))
    spec = tools[tool]
    arguments: dict[str, JsonValue] = {"command" if tool == "shell" else "path": what}
    confined = policies.confinement(mode, workspace).use is not SandboxUse.OFF and not why_no_sandbox()
    judged = policies.of(mode, workspace, confined=confined).judge(spec, arguments, spec.claims(arguments))
    return Explanation(
        mode=mode,
        authority=judged.ruling.authority,
        reason=judged.ruling.reason,
        rule=judged.ruling.rule,
        level=judged.stakes.level,
        runs=tuple(command.shown for command in read_command(what).commands) if tool == "shell" else (),
    )
