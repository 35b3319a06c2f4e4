"""How an episode gets the judge of its completion check, and what that judge used."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol

from experiments.completion_choice import engine_choice
from experiments.episode import RoleUsage
from experiments.plan import EpisodeSpec
from experiments.roles import Role
from geode.clock import Clock
from geode.config.settings import Settings
from geode.executor.policy import Mode
from geode.llm.binding import ModelOptions
from geode.llm.errors import ConfigurationError
from geode.records.purse import Account
from geode.redaction import Redactor
from geode.serve.accounts import Accounts
from judges.catalogue import EngineParts, JudgeConfigError, lifts_guard, open_engine
from judges.completion import EngineCompletion
from judges.engine import RubricRefused
from judges.independence import why_not_independent
from judges.rubric import Rubric


class InLoopJudge(EngineCompletion):
    """The completion judge of one episode, and what it used."""

    def usage(self) -> RoleUsage:
        """Return what its requests used. Engines do not tell cached input from other input."""
        asked = [one for one in self.asked if one.model]
        return RoleUsage(
            uncached_input_tokens=sum(one.input_tokens or 0 for one in asked),
            output_tokens=sum(one.output_tokens or 0 for one in asked),
            cost_usd=sum(one.cost_usd or 0.0 for one in asked),
            unpriced_calls=sum(one.cost_usd is None for one in asked),
            calls=len(asked),
            latency_ms=sum(one.latency_ms for one in asked),
        )


class CompletionOpener(Protocol):
    """Opens the judge of an episode whose scaffold has a completion check."""

    def __call__(self, spec: EpisodeSpec, account: Account, folder: Path) -> InLoopJudge:
        """Return it; it is paid from `account`.

        Raises:
            ConfigurationError: if it cannot be asked as configured; the experiment stops.
        """
        ...


class CompletionJudges:
    """Implements `CompletionOpener` with the settings of a process."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock

    @cached_property
    def _accounts(self) -> Accounts:
        return Accounts(self._settings.root, self._clock)

    def __call__(self, spec: EpisodeSpec, account: Account, folder: Path) -> InLoopJudge:
        """See `CompletionOpener`."""
        check, target = spec.scaffold.completion, spec.roles[Role.TARGET]
        assert check is not None
        environment: Mapping[str, str] = self._settings.environment
        parts = EngineParts(
            clock=self._clock,
            environment=environment,
            purse=self._accounts.purse(account, folder.name, Mode.EXPERIMENT),
            redactor=Redactor.of_environment(dict(environment)),
        )
        try:
            options = spec.options.get(Role.JUDGE, ModelOptions())
            choice = engine_choice(check, spec.roles.get(Role.JUDGE, ""), options)
            engine = open_engine(choice, parts)
            if not lifts_guard(choice) and (reason := why_not_independent(engine.models, target)):
                allow = "bind another judge, or allow it by +completion.options.allow_same_family=true"
                raise ConfigurationError(f"role.judge: {reason}; {allow}")
            rubric = Rubric.model_validate(check.rubric)
            return InLoopJudge(engine, rubric, pass_at=check.pass_at, target=target)
        except (JudgeConfigError, RubricRefused) as error:
            raise ConfigurationError(f"completion: {error}") from error
