"""What a session is: enough to open it again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from pydantic import JsonValue, ValidationError

from geode.executor.policy import Mode
from geode.llm.binding import ModelOptions
from geode.records.purse import Account
from geode.scaffold import LoopLimits, Scaffold, SubAgentContract
from geode.serve.delegation import child_scaffold
from geode.tools.environment import CommandEnvironment

NO_OPTIONS, NO_ACCOUNT = ModelOptions(), Account()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """What makes a session, apart from where it works and is recorded. Stored, so that it can be opened again.

    `environment` is the sandbox in which its tools execute; opened again without it, they would execute outside.
    `path` names the sub-agents from the root down to this one; a session that nobody delegated to has none. `options`
    say how the model is asked, in this session and in those of its sub-agents; `account` who pays for all of them.
    """

    session_id: str
    mode: Mode
    scaffold: Scaffold
    model: str
    simulation_key: str
    caps: LoopLimits | None = None
    environment: CommandEnvironment | None = None
    path: tuple[str, ...] = ()
    options: ModelOptions = NO_OPTIONS
    account: Account = NO_ACCOUNT

    def child(self, session_id: str, contract: SubAgentContract) -> Self:
        """Return what the session of a sub-agent is: this one, less what its contract does not name."""
        path = (*self.path, contract.name)
        scaffold = child_scaffold(self.scaffold, contract, len(path))
        key = f"{self.simulation_key}/{session_id}"
        return replace(self, session_id=session_id, scaffold=scaffold, path=path, simulation_key=key)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the specification as the status file holds it."""
        return {
            "session_id": self.session_id,
            "mode": self.mode.value,
            "scaffold_id": self.scaffold.scaffold_id,
            "scaffold": self.scaffold.model_dump(mode="json"),
            "model": self.model,
            "simulation_key": self.simulation_key,
            "caps": self.caps.model_dump(mode="json") if self.caps else None,
            "environment": self.environment.model_dump(mode="json") if self.environment else None,
            "path": list(self.path),
            "options": self.options.model_dump(mode="json"),
            "account": self.account.model_dump(mode="json", exclude_defaults=True),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, JsonValue]) -> Self:
        """Read what `to_json` gave.

        Raises:
            ValueError: if it is not such a specification.
        """
        try:
            return cls(
                session_id=str(body["session_id"]),
                mode=Mode(str(body["mode"])),
                scaffold=Scaffold.model_validate(body["scaffold"]),
                model=str(body["model"]),
                simulation_key=str(body["simulation_key"]),
                caps=LoopLimits.model_validate(body["caps"]) if body.get("caps") else None,
                environment=CommandEnvironment.model_validate(env) if (env := body.get("environment")) else None,
                path=tuple(str(name) for name in path) if isinstance(path := body.get("path"), list) else (),
                options=ModelOptions.model_validate(body.get("options") or {}),
                account=Account.model_validate(body.get("account") or {}),
            )
        except KeyError as missing:
            raise ValueError(f"it lacks {missing}") from missing
        except ValidationError as error:
            detail = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}") from error
