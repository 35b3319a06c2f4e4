"""The judge of a session outside of experiments: what its user named becomes a check, and the check an engine."""

from pathlib import Path
from typing import Final

import yaml
from pydantic import JsonValue

from geode.config.config_dir import config_dir
from geode.llm.catalog import is_decision_only
from geode.llm.errors import ConfigurationError
from geode.llm.routes import parse_model
from geode.loop.verify import CompletionJudge
from geode.scaffold import CompletionCheck
from geode.serve.completion import CompletionParts
from judges.catalogue import (
    EngineParts,
    JudgeConfigError,
    choice_of,
    lifts_guard,
    model_words,
    open_engine,
    read_choice,
)
from judges.completion import EngineCompletion
from judges.independence import why_not_independent
from judges.rubric import Rubric, find_rubric

_NEEDS_MORE: Final = frozenset({"llm", "cascade", "panel", "recorded"})
_RUBRIC: Final = "completion"


class SessionJudges:
    """Implements `geode.serve.completion.CompletionOffer` with the engines of `judges.catalogue`."""

    def check(self, wanted: str) -> CompletionCheck:
        """See `CompletionOffer.check`. A model is asked by `llm`, one that only decides by `jev`.

        What `configs/completion` says of an engine holds here, too: options, rubric and what passes.

        Raises:
            ValueError: if there is no such engine, or its name alone does not configure it.
            ConfigurationError: if what is named is no model.
        """
        configs = config_dir()
        engine, words = wanted, list[str]()
        if "/" in wanted:
            engine = "jev" if is_decision_only(parse_model(wanted)) else "llm"
            # Whoever names a model for one session knows which one they mean, as with the session's own.
            words = [*model_words(engine, wanted), "allow_moving=true"]
        elif wanted in _NEEDS_MORE:
            raise JudgeConfigError(
                f"the judge {wanted!r} needs more than its name; bind a model as route/id, jev, rules or the judge"
                " of an installed package"
            )
        choice = read_choice(configs / "judge", engine, words)
        preset = _read_preset(configs / "completion" / f"{engine}.yaml")
        body: dict[str, JsonValue] = choice.model_dump(mode="json", exclude={"engine"})
        options = preset.get("options")
        return CompletionCheck(
            engine=choice.engine,
            options=body | (options if isinstance(options, dict) else {}),
            rubric=find_rubric(configs / "rubric", str(preset.get("rubric", _RUBRIC))).model_dump(mode="json"),
            pass_at=float(str(preset.get("pass_at", 1.0))),
        )

    def open(self, check: CompletionCheck, parts: CompletionParts) -> CompletionJudge:
        """See `CompletionOffer.open`.

        Raises:
            ValueError: if the engine cannot be used with these options or by this rubric.
            ConfigurationError: if its model has no key, cannot be asked, or is of the target's family.
        """
        choice = choice_of(check.engine, {"engine": check.engine, **check.options})
        engine = open_engine(
            choice,
            EngineParts(clock=parts.clock, environment=parts.environment, purse=parts.purse, redactor=parts.redactor),
        )
        if not lifts_guard(choice) and (reason := why_not_independent(engine.models, parts.target)):
            raise ConfigurationError(f"{reason}; name a judge of another provider's family")
        rubric = Rubric.model_validate(check.rubric)
        return EngineCompletion(engine, rubric, pass_at=check.pass_at, target=parts.target)


def _read_preset(path: Path) -> dict[str, JsonValue]:
    body = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return body if isinstance(body, dict) else {}


session_judges: Final = SessionJudges()
