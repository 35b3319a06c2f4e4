"""Facts of `geode.redaction`: text that every store can hold, and no secret in it, however it is written."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.redaction import REDACTED, Redactor, clean_text

CANARY = 'zx-Canary/7+"key"=1'
ANY_TEXT = st.text(st.characters(), max_size=50)
SOUND_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=50)


def redactor(**environment: str) -> Redactor:
    return Redactor.of_environment(environment)


# Hygiene


@given(ANY_TEXT)
def test_cleaned_text_can_be_stored_and_sent(text: str) -> None:
    """R14: one unpaired half makes a provider refuse the request, or the history file unwritable."""
    cleaned = clean_text(text)
    assert cleaned.encode().decode() == cleaned
    assert "\0" not in cleaned
    assert clean_text(cleaned) == cleaned


@given(SOUND_TEXT)
def test_sound_text_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("paste \udc8f here", "paste � here"),
        ("\ud83c", "�"),
        ("\ud83cx", "�x"),
        ("\udf78\ud83c", "��"),
        ("\ud83c\udf78", "🍸"),  # two halves that belong together are one character
        ("\ufeffbom stays", "\ufeffbom stays"),
        ("a\0b", "a�b"),
        ("é\0", "é�"),
    ],
)
def test_only_what_cannot_be_held_is_replaced(dirty: str, clean: str) -> None:
    assert clean_text(dirty) == clean


# Secrets


@pytest.mark.parametrize(
    "name",
    ["ANTHROPIC_API_KEY", "GEODE_DAEMON_TOKEN", "SLACK_BOT_TOKEN", "MY_RANDOM_TOKEN", "db_password", "AWS_SECRETS"],
)
def test_a_variable_named_like_a_secret_is_one(name: str) -> None:
    """R40: each of these leaked somewhere."""
    assert redactor(**{name: CANARY}).redact(f"echo {CANARY}!") == f"echo {REDACTED}!"


@pytest.mark.parametrize(
    ("name", "value"), [("PATH", "/usr/local/bin"), ("KEYBOARD", "dvorak-layout"), ("X_KEY", "true")]
)
def test_honest_text_stays(name: str, value: str) -> None:
    """A short value stands in too much text, and most variables hold no secret."""
    assert redactor(**{name: value}).redact(f"say {value}") == f"say {value}"


@pytest.mark.parametrize(
    "written",
    [
        CANARY,
        quote(CANARY, safe=""),
        quote(CANARY),
        quote_plus(CANARY),
        json.dumps({"k": CANARY}),
        json.dumps({"k": CANARY + "é"}),
        base64.b64encode(CANARY.encode()).decode(),
        base64.urlsafe_b64encode(CANARY.encode()).decode(),
        CANARY.encode().hex(),
        CANARY.encode().hex().upper(),
        CANARY[::-1],
    ],
)
def test_a_secret_is_known_in_every_usual_form(written: str) -> None:
    """R40: also base64 and URL-encoded; a tool's arguments and receipts are JSON."""
    safe = redactor(API_KEY=CANARY).redact(written)
    assert REDACTED in safe
    assert not any(part in safe for part in ("Canary", "Y2FuYXJ5", "Q2FuYXJ5"))


@given(st.binary(max_size=7), st.binary(max_size=7), st.sampled_from([CANARY, "12345678", "x" * 9, "é" * 8]))
def test_a_secret_inside_base64_of_more_is_known(before: bytes, after: bytes, secret: str) -> None:
    """`printenv KEY | base64` encodes a line end too, and so has another text than the secret alone."""
    whole = base64.b64encode(before + secret.encode() + after).decode()
    assert REDACTED in redactor(API_KEY=secret).redact(whole)


def test_a_secret_that_begins_with_another_goes_whole() -> None:
    secrets = redactor(A_KEY="12345678", B_KEY="12345678-long-tail")
    assert secrets.redact("12345678-long-tail and 12345678") == f"{REDACTED} and {REDACTED}"


def test_a_secret_of_many_lines_is_known_in_json() -> None:
    secrets = redactor(SSH_KEY="-----BEGIN-----\nabc\n")
    assert secrets.redact(json.dumps("-----BEGIN-----\nabc\n")) == f'"{REDACTED}"'


def test_an_environment_that_is_not_utf8_is_no_obstacle() -> None:
    """The system hands such bytes over as unpaired surrogates; quoting them would end the start-up."""
    secrets = redactor(ODD_TOKEN="\udcff\udcfe-secret-value")
    assert secrets.redact("%FF%FE-secret-value") == REDACTED


@pytest.mark.parametrize(
    "shaped",
    [
        "sk-" + "ant-api03-" + "a1B2" * 6,
        "sk-or-v1-0123456789abcdef0123",
        "xoxb-1234567890-abcdef",
        "ghp_abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
    ],
)
def test_what_is_shaped_like_a_key_goes_without_being_known(shaped: str) -> None:
    assert Redactor().redact(f"header: {shaped}\n") == f"header: {REDACTED}\n"


@pytest.mark.parametrize("text", ["risk-averse", "a sk-short", "AKIA", "task-force-one-two-three-four", "eyJ.eyJ.x"])
def test_what_only_begins_like_a_key_stays(text: str) -> None:
    assert Redactor().redact(text) == text


def test_a_redactor_does_not_show_what_it_knows() -> None:
    """Tracebacks show the parts of what failed."""
    redactor = Redactor.of_environment({"API_KEY": "canary-0123456789"})

    assert redactor.secrets == ("canary-0123456789",)
    assert "canary" not in repr(redactor)
    assert redactor.needles
