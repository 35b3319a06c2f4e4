"""Facts of `geode.records.receipts`: an effect is admitted once, and what is known of it never goes backwards."""

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from geode.clock import ManualClock
from geode.events import CallEnd
from geode.records.database import RecordError, RecordLocked
from geode.records.receipts import EffectReceiptStore, ReceiptKey, ReceiptState

KEY = ReceiptKey(round=1, call_id="c1")


def open_(path: Path, clock: ManualClock | None = None) -> EffectReceiptStore:
    return EffectReceiptStore.open(path / "effects.db", clock or ManualClock())


def admit(store: EffectReceiptStore, key: ReceiptKey = KEY, arguments: str = "{}") -> None:
    store.admit(key, tool="t", arguments=arguments, arguments_hash="h", intent="i")


def states(store: EffectReceiptStore) -> dict[ReceiptKey, ReceiptState]:
    return {receipt.key: receipt.state for receipt in store.all()}


# What may follow what: written here once more, by hand, from contract 5.5.
ALLOWED = {
    "admitted": {"started", "not_started"},
    "started": {"succeeded", "failed", "uncertain"},
    "uncertain": {"succeeded", "failed", "not_started"},
    "succeeded": set(),
    "failed": set(),
    "not_started": set(),
}
AFTER_A_CRASH = {"admitted": "not_started", "started": "uncertain"}


class ReceiptsMachine(RuleBasedStateMachine):
    """Any sequence of attempts: each is either an allowed step, or refused and without trace."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name)
        self._store = open_(self._path)
        self._model: dict[ReceiptKey, str] = {}

    def teardown(self) -> None:
        self._store.close()
        self._folder.cleanup()

    @rule(
        target=keys,
        round_=st.integers(1, 2),
        call=st.sampled_from(["a", "b"]),
        path=st.sampled_from(["", "child"]),
        attempt=st.integers(1, 2),
    )
    def name(self, round_: int, call: str, path: str, attempt: int) -> ReceiptKey:
        return ReceiptKey(round=round_, call_id=call, path=path, attempt=attempt)

    @rule(key=keys)
    def admit(self, key: ReceiptKey) -> None:
        if key in self._model:
            with pytest.raises(RecordError, match="already admitted; it is not run again"):
                admit(self._store, key)
        else:
            admit(self._store, key)
            self._model[key] = "admitted"

    @rule(key=keys)
    def start(self, key: ReceiptKey) -> None:
        self._step(key, "started", lambda: self._store.started(key), source={"admitted"})

    @rule(key=keys, end=st.sampled_from(CallEnd))
    def end(self, key: ReceiptKey, end: CallEnd) -> None:
        self._step(key, end.value, lambda: self._store.ended(key, end), source={"admitted", "started"})

    @rule(key=keys, end=st.sampled_from(ReceiptState))
    def settle(self, key: ReceiptKey, end: ReceiptState) -> None:
        self._step(
            key, end.value, lambda: self._store.settle(key, end, by="operator", note="seen"), source={"uncertain"}
        )

    @rule()
    def crash_and_reopen(self) -> None:
        self._store.close()
        self._store = open_(self._path)
        self._model = {key: AFTER_A_CRASH.get(state, state) for key, state in self._model.items()}

    def _step(self, key: ReceiptKey, end: str, act: object, *, source: set[str]) -> None:
        before = self._model.get(key)
        assert callable(act)
        if before is not None and before in source and end in ALLOWED[before]:
            act()
            self._model[key] = end
        else:
            with pytest.raises(RecordError):
                act()

    @invariant()
    def what_is_stored_is_what_was_allowed(self) -> None:
        assert {key: state.value for key, state in states(self._store).items()} == self._model


TestReceiptsMachine = ReceiptsMachine.TestCase
TestReceiptsMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


def test_a_started_effect_is_uncertain_after_a_crash_and_an_admitted_one_never_began(tmp_path: Path) -> None:
    """Contract 5.5: half-done work is neither success nor failure."""
    store = open_(tmp_path)
    keys = {name: ReceiptKey(round=1, call_id=name) for name in ("admitted", "started", "done")}
    for key in keys.values():
        admit(store, key)
    store.started(keys["started"])
    store.started(keys["done"])
    store.ended(keys["done"], CallEnd.SUCCEEDED)
    store.close()
    clock = ManualClock(elapsed_s=60)
    again = open_(tmp_path, clock)
    assert states(again) == {
        keys["admitted"]: ReceiptState.NOT_STARTED,
        keys["started"]: ReceiptState.UNCERTAIN,
        keys["done"]: ReceiptState.SUCCEEDED,
    }
    (uncertain,) = again.all(ReceiptState.UNCERTAIN)
    assert (uncertain.note, uncertain.ended_at) == ("the process ended", "2030-01-01T00:01:00.000Z")
    again.close()


def test_recovering_twice_changes_nothing(tmp_path: Path) -> None:
    store = open_(tmp_path)
    admit(store)
    store.started(KEY)
    store.close()
    seen = []
    for minutes in (1, 2):
        again = open_(tmp_path, ManualClock(elapsed_s=60 * minutes))
        seen.append(again.all())
        again.close()
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "other",
    [
        ReceiptKey(round=2, call_id="c1"),
        ReceiptKey(round=1, call_id="c2"),
        ReceiptKey(round=1, call_id="c1", path="child"),
        ReceiptKey(round=1, call_id="c1", attempt=2),
    ],
)
def test_each_part_of_the_key_names_another_effect(tmp_path: Path, other: ReceiptKey) -> None:
    """R05 and R07: a call of a sub-agent, of another round or of a second attempt is not this one."""
    store = open_(tmp_path)
    admit(store)
    admit(store, other)
    with pytest.raises(RecordError, match=r"call 'c1' of round 1 was already admitted"):
        admit(store, KEY, '{"other":"arguments"}')
    assert [receipt.arguments for receipt in store.all()] == ["{}", "{}"]
    store.close()


def test_what_is_settled_says_by_whom_and_why(tmp_path: Path) -> None:
    store = open_(tmp_path)
    admit(store)
    store.started(KEY)
    store.ended(KEY, CallEnd.UNCERTAIN, "cancelled")
    store.settle(KEY, ReceiptState.FAILED, by="operator", note="no mail in the outbox")
    (receipt,) = store.all()
    assert (receipt.state, receipt.settled_by, receipt.note) == (
        ReceiptState.FAILED,
        "operator",
        "no mail in the outbox",
    )
    store.close()


def test_receipts_come_in_the_order_of_admission_also_if_the_clock_goes_back(tmp_path: Path) -> None:
    clock = ManualClock()
    store = open_(tmp_path, clock)
    for name in ("z", "m", "a"):
        admit(store, ReceiptKey(round=1, call_id=name))
        clock.advance(-3_600)
    assert [receipt.key.call_id for receipt in store.all()] == ["z", "m", "a"]
    store.close()


def test_a_store_has_one_owner_and_lets_go_when_it_cannot_be_opened(tmp_path: Path) -> None:
    store = open_(tmp_path)
    admit(store)
    store.close()
    with sqlite3.connect(tmp_path / "effects.db") as raw:
        raw.execute("ALTER TABLE receipts RENAME TO receipt")
    raw.close()
    with pytest.raises(RecordError, match="no such table"):
        open_(tmp_path)
    with sqlite3.connect(tmp_path / "effects.db", timeout=0.01) as raw:
        raw.execute("ALTER TABLE receipt RENAME TO receipts")
    raw.close()
    again = open_(tmp_path)
    reader = sqlite3.connect(tmp_path / "effects.db", timeout=0.01)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        reader.execute("SELECT 1 FROM receipts")
    reader.close()
    again.close()
    assert issubclass(RecordLocked, RecordError)
