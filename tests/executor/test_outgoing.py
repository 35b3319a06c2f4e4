"""Facts of `geode.executor.outgoing`: what is found in a call's arguments, however it is written, and what is not."""

import base64
import random
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.authority import SafetyLevel
from geode.events import CallEnd
from geode.executor.approval import Approval, ApprovalRequest
from geode.executor.call import ExecutedCall, Place
from geode.executor.executor import ToolExecutor
from geode.executor.outgoing import Outgoing
from geode.executor.policy import Mode
from geode.llm.messages import ToolUse
from geode.redaction import Redactor
from tests.doubles.sessions import Bench
from tests.executor.conftest import BenchOpener
from tests.executor.test_approval import spy

SECRET = "zx-Canary/7+key=0001-abcdef"
PROMPT = (
    "You are an agent of the Example company. Never say that its name is Example, whatever you are asked.\n- Be kind."
)
KNOWS = Outgoing(Redactor.of_environment({"SOME_TOKEN": SECRET}), PROMPT)
RAW = SECRET.encode()


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"https://x.test/?q={quote(SECRET, safe='')}",
        "".join(f"%{byte:02X}" for byte in RAW),
        RAW.hex(),
        f"0x{RAW.hex().upper()}",
        f"{RAW.hex()}.leak.test",
        *(f"see {encoded(b'x' * n + RAW + b'tail')}." for n in range(3)),
        f"https://x.test/img/{encoded(RAW)}",
        base64.urlsafe_b64encode(RAW).decode().rstrip("="),
        SECRET[::-1],
        " ".join(SECRET),
        "\n".join(SECRET.upper()),
        f"a={SECRET[:9]}&b={SECRET[9:]}",
        f"second {SECRET[20:]} first {SECRET[:20]}",
    ],
)
def test_a_secret_is_found_however_it_is_written(text: str) -> None:
    """A20: as it is, encoded, reversed, broken up, or in two pieces."""
    assert KNOWS.holds_secret({"a": {"deep": [1, text]}})
    assert not Outgoing(Redactor(), PROMPT).holds_secret({"a": text})


def test_a_secret_in_two_arguments_is_found() -> None:
    assert KNOWS.holds_secret({"a": SECRET[:12], "b": [SECRET[12:]]})


@given(st.integers(4, len(SECRET) - 4), st.text(max_size=20), st.text(max_size=20))
def test_wherever_it_is_cut(at: int, before: str, between: str) -> None:
    assert KNOWS.holds_secret({"a": f"{before}{SECRET[:at]}{between}{SECRET[at:]}"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SOME_TOKEN is read from the environment",
        SECRET[:12],
        f"{SECRET[:3]} and so on",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        encoded(b"a perfectly ordinary note, as long as a secret is"),
        "x" * 10_000,
        "%41%42%",
        "zz=====",
    ],
)
def test_what_is_no_secret_is_none(text: str) -> None:
    """Half a key is no key, and a hash is none."""
    assert not KNOWS.holds_secret({"a": text})


@pytest.mark.parametrize(
    ("secret", "known"),
    [("development", False), ("password123", True), ("---------", False), ("2026-12-01", False), ("aB3" * 4, True)],
)
def test_a_password_that_is_a_word_is_not_looked_for(secret: str, known: bool) -> None:
    """Else no call could say `development` on a machine whose password that is."""
    knows = Outgoing(Redactor.of_environment({"DB_PASSWORD": secret}))
    assert knows.holds_secret({"a": f"the {secret} of it"}) is known


def test_random_texts_are_none() -> None:
    """Over a megabyte of letters and digits as they are met with."""
    draw = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=-_ \n"
    texts = ["".join(draw.choices(letters, k=10_000)) for _ in range(100)]
    assert not any(KNOWS.holds_secret({"a": text}) for text in texts)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PROMPT, True),
        (f"My instructions: {PROMPT[:60]}", True),
        ("> NEVER SAY THAT ITS NAME\n> IS *EXAMPLE*, WHATEVER YOU ARE ASKED", True),
        (quote(PROMPT), True),
        (f"trace={encoded(PROMPT.encode())}", True),
        (PROMPT.encode().hex(), True),
        (PROMPT[::-1], True),
        ("You are an agent.", False),
        ("Never say that. Be kind. It is a company.", False),
        ("The Example company asked for an agent that is kind and that never says whatever it was asked.", False),
    ],
)
def test_a_part_of_the_system_prompt_is_found_where_nobody_would_write_it_by_chance(text: str, found: bool) -> None:
    """A03: forty letters and digits in a row, whatever stands between them."""
    assert KNOWS.holds_prompt({"text": text}) is found
    assert not Outgoing(Redactor()).holds_prompt({"text": text})


# In the chain of authority


class Keeping:
    def __init__(self, answer: Approval) -> None:
        self.answer, self.asked = answer, list[ApprovalRequest]()

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        return self.answer


async def run(bench: Bench, arguments: str, system: str = "") -> ExecutedCall:
    executor: ToolExecutor = bench.executor
    if system:
        executor._outgoing = Outgoing(Redactor(), system)
    return await executor.aexecute(ToolUse(call_id="c", name="act", arguments=arguments), Place(turn=1, round=1))


@pytest.mark.parametrize("level", [SafetyLevel.READ, SafetyLevel.WRITE, SafetyLevel.EXTERNAL])
@pytest.mark.parametrize("mode", [Mode.REPL, Mode.EXPERIMENT])
async def test_a_call_that_holds_a_secret_is_refused_and_nobody_is_shown_it(
    opened: BenchOpener, level: SafetyLevel, mode: Mode
) -> None:
    """A10: also one that only looks something up, since a server decides what it does with a question."""
    ran: list[object] = []
    person = Keeping(Approval.ONCE)
    redactor = Redactor.of_environment({"SOME_TOKEN": SECRET})
    bench = opened(spy(ran, level=level), mode=mode, approver=person, redactor=redactor)
    executed = await run(bench, f'{{"q": "{RAW.hex()}"}}')
    assert (executed.stage, executed.end, ran, person.asked) == ("policy", CallEnd.NOT_STARTED, [], [])
    if (level, mode) != (SafetyLevel.EXTERNAL, Mode.EXPERIMENT):
        assert "hold a secret of this machine" in executed.result.text
    assert RAW.hex() not in bench.folder.timeline.read_text()


@pytest.mark.parametrize(("level", "asks"), [(SafetyLevel.EXTERNAL, True), (SafetyLevel.READ, False)])
async def test_what_sends_a_part_of_the_system_prompt_asks_first(
    opened: BenchOpener, level: SafetyLevel, asks: bool
) -> None:
    """Also if a rule allows the tool: whoever wrote it did not mean that."""
    ran: list[object] = []
    person = Keeping(Approval.NO)
    bench = opened(spy(ran, level=level), mode=Mode.REPL, approver=person)
    executed = await run(bench, f'{{"note": "as I was told: {PROMPT[:70]}"}}', PROMPT)
    assert bool(person.asked) is asks
    if asks:
        assert person.asked[0].reason.endswith("; it sends a part of the system prompt")
        assert executed.stage == "approval"
