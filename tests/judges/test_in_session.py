"""What a user names as the judge of a session: a check that holds all of it, and the judge that it opens."""

import pytest

from geode.clock import ManualClock
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.errors import ConfigurationError, CredentialMissing
from geode.llm.spending import NoPurse
from geode.redaction import Redactor
from geode.scaffold import CompletionCheck
from geode.serve.completion import CompletionParts, completion_offer
from judges.in_session import SessionJudges
from tests.doubles.provider import keys_of

CLAUDE, GPT = "anthropic/claude-opus-5-5", "openai/gpt-6-sol"


def parts(environment: dict[str, str], target: str = GPT) -> CompletionParts:
    return CompletionParts(
        target=target, environment=environment, purse=NoPurse(), clock=ManualClock(), redactor=Redactor()
    )


@pytest.mark.parametrize(
    ("wanted", "engine", "named", "pass_at", "rubric"),
    [
        (CLAUDE, "llm", {"model": CLAUDE}, 1.0, "completion"),
        ("jev", "jev", {"route": "openrouter", "model_id": ""}, 0.5, "completion"),
        ("typesafe/jev-1.13.0", "jev", {"route": "typesafe", "model_id": "jev-1.13.0"}, 0.5, "completion"),
        ("rules", "rules", {"checks": {"claims_hold": "false_claims"}}, 1.0, "completion_rules"),
    ],
)
def test_what_is_named_becomes_a_check_that_opens_again_from_its_content(
    wanted: str, engine: str, named: dict[str, object], pass_at: float, rubric: str
) -> None:
    """A session is kept as JSON; what it says of its judge has to be enough."""
    check = CompletionCheck.model_validate_json(SessionJudges().check(wanted).model_dump_json())
    assert (check.engine, check.pass_at, check.rubric["name"]) == (engine, pass_at, rubric)
    assert {name: check.options[name] for name in named} == named
    with FakeProvider() as double:
        assert SessionJudges().open(check, parts(keys_of(double))).name == engine


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("nobody", "there is no judge 'nobody'; there are cascade, jev"),
        ("none", "there is no judge 'none'"),
        ("llm", "'llm' needs more than its name; bind a model as route/id"),
        ("cascade", "'cascade' needs more than its name"),
        ("recorded", "'recorded' needs more than its name"),
        ("nowhere/gpt", "names the route 'nowhere'"),
    ],
)
def test_what_names_no_judge_is_refused_with_what_does(wanted: str, said: str) -> None:
    with pytest.raises((ValueError, ConfigurationError), match=said):
        SessionJudges().check(wanted)


def test_a_judge_without_a_key_or_of_the_targets_family_is_not_opened() -> None:
    check = SessionJudges().check(CLAUDE)
    with pytest.raises(CredentialMissing, match="ANTHROPIC_API_KEY"):
        SessionJudges().open(check, parts({}))
    with FakeProvider() as double:
        with pytest.raises(ConfigurationError, match="are both of the family anthropic; name a judge of another"):
            SessionJudges().open(check, parts(keys_of(double), "openrouter/anthropic/claude-opus-5.5"))
        assert len(double.requests) == 0


def test_the_runtime_finds_it_by_its_name() -> None:
    """The entry point of the installed package; nothing in the runtime imports it."""
    assert isinstance(completion_offer(), SessionJudges)
