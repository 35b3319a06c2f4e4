"""Which models may be bound to what. Everything here is said before any request."""

from datetime import date
from difflib import get_close_matches

from geode.clock import SystemClock
from geode.llm.binding import Effort, ModelOptions
from geode.llm.catalog import Entry, Sampling, catalog, is_moving
from geode.llm.errors import ConfigurationError, RouteRefused
from geode.llm.routes import ARCHIVED, SIMULATED, ModelName, Route, parse_model

JUDGE = "judge"
"""The one role that a decision-only model can play."""


def check_launchable(text: str, *, today: date | None = None) -> ModelName:
    """Return the model if a session can be opened on it.

    Raises:
        ConfigurationError: if the name is not well formed.
        RouteRefused: if the route does not reach it, or it cannot hold a session, with what can be used instead.
    """
    model = parse_model(text)
    if text in SIMULATED:
        return model
    if model.route is Route.RECORDED:
        raise RouteRefused(f"{text!r} can be replayed, not launched; launch one of {_some_names()}")
    entry = _admitted(model, today)
    if entry.decision_only:
        raise RouteRefused(
            f"{text!r} is decision-only: it answers questions about a text, so it can be a judge, and cannot hold a"
            f" session; launch one of {_some_names()}"
        )
    return model


def check_role(role: str, text: str, *, today: date | None = None) -> ModelName:
    """Return the model if it can play `role` in a new episode.

    Raises:
        ConfigurationError: if the name is not well formed.
        RouteRefused: if it cannot, with the reason and what can.
    """
    model = parse_model(text)
    if run := ARCHIVED.get(text):
        raise RouteRefused(
            f"{text!r} is bound as {run} has it on record: it can be replayed from those records, not launched, since a"
            " new answer would not be that run. Replay: `geode archive import PATH`; for new episodes bind the role to"
            " another model of `geode models ls`"
        )
    entry = catalog().find(model)
    if entry is None or not entry.decision_only:
        return check_launchable(text, today=today)
    if role != JUDGE:
        raise RouteRefused(f"{text!r} is decision-only: it can be a judge, not the {role}")
    _admitted(model, today)
    return model


def check_registered(text: str, *, allow_moving: bool = False) -> ModelName:
    """Return the model if a registered experiment may bind it.

    Raises:
        RouteRefused: if its id leads to another model tomorrow, so that nobody could say what was measured.
    """
    model = parse_model(text)
    if is_moving(model) and not allow_moving:
        raise RouteRefused(
            f"{text!r} leads to different models at different times: bind an exact id, or allow moving ids for this"
            " experiment; the model that is served is recorded in any case"
        )
    return model


def check_options(model: ModelName, options: ModelOptions) -> None:
    """Check what a configuration says about how `model` is asked.

    Raises:
        ConfigurationError: if the provider would refuse it, or take no notice of it.
    """
    entry = _listed(model)
    by_plan = model.route is Route.OPENAI_CODEX
    wanted = options.max_output_tokens
    if wanted is not None and by_plan:
        raise ConfigurationError(f"max_output_tokens is {wanted}; {model} lets nobody set it; leave it out")
    if wanted is not None and wanted > entry.output_tokens_max:
        most = entry.output_tokens_max
        raise ConfigurationError(f"max_output_tokens is {wanted}; {model} writes at most {most} in one reply")
    if options.effort is not None and options.effort not in entry.efforts:
        takes = f"one of {', '.join(entry.efforts)}" if entry.efforts else "none at all; leave it out"
        raise ConfigurationError(f"effort is {options.effort.value!r}; {model} takes {takes}")
    sampling = Sampling.NONE if by_plan else entry.sampling
    if options.temperature is not None and (why := _why_not(sampling, options, options.temperature)):
        raise ConfigurationError(f"temperature is {options.temperature:g}; {model} {why}")
    if options.upstream and model.route is not Route.OPENROUTER:
        text = f"upstream is {options.upstream!r}; only OpenRouter leads to several, and {model} is reached by"
        raise ConfigurationError(f"{text} {model.route}")


def _why_not(sampling: Sampling, options: ModelOptions, temperature: float) -> str:
    if sampling is Sampling.NONE:
        return "takes no sampling parameters; leave it out"
    if sampling is Sampling.WITHOUT_REASONING and options.effort is not Effort.NONE:
        return "takes one only with effort none; set that, or leave the temperature out"
    if sampling is Sampling.OPEN_UNIT and not 0 < temperature < 1:
        return "takes one between 0 and 1, neither of them"
    return ""


def _listed(model: ModelName) -> Entry:
    entry = catalog().find(model)
    if entry is None:
        raise RouteRefused(_why_unknown(model))
    return entry


def _admitted(model: ModelName, today: date | None) -> Entry:
    entry = _listed(model)
    last = entry.ends_by(model.route)
    if last is not None and (today or SystemClock().now().date()) > last:
        default = catalog().default(model.route)
        raise RouteRefused(f"{str(model)!r} was served until {last}; bind another model, such as {default}")
    return entry


def _why_unknown(model: ModelName) -> str:
    if model.route is Route.SIMULATED:
        return f"there is no {str(model)!r}; the simulated models are {', '.join(SIMULATED)}"
    other = [name for name in catalog().by_name if name.model_id == model.model_id]
    if other:
        return f"{model.model_id!r} is not admitted by {model.route}; it is by {', '.join(map(str, other))}"
    known = {name.model_id: name for name, _ in catalog().of_route(model.route)}
    whole = [known_id for known_id in known if known_id.endswith(f"/{model.model_id}")]
    whole += [known_id for known_id in known if known_id.startswith(f"{model.model_id}-20")]
    near = whole or get_close_matches(model.model_id, known, n=1, cutoff=0.75)
    hint = f"did you mean {str(known[near[0]])!r}? " if near else ""
    return f"{str(model)!r} is not in the catalogue; {hint}geode models ls --route {model.route} names all"


def _some_names() -> str:
    defaults = (catalog().default(route) for route in Route)
    return ", ".join([*SIMULATED, *(str(name) for name in dict.fromkeys(defaults) if name)])
