"""Facts of `geode.clock`: times that compare as text, and identifiers that sort by time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.clock import ManualClock, SystemClock, encode_ulid, rfc3339

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
PARTS = st.tuples(st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 80) - 1))


def decode(ulid: str) -> int:
    value = 0
    for digit in ulid:
        value = value * 32 + DIGITS.index(digit)
    return value


def test_a_time_is_utc_with_milliseconds_and_z() -> None:
    seoul = timezone(timedelta(hours=9))
    assert rfc3339(datetime(2030, 1, 1, 8, 59, 59, 999_999, tzinfo=seoul)) == "2029-12-31T23:59:59.999Z"


def test_a_time_without_a_zone_is_refused() -> None:
    """R49: a naive time cannot be ordered against another."""
    with pytest.raises(ValueError, match="no time zone"):
        rfc3339(datetime(2030, 1, 1))  # noqa: DTZ001


@given(MOMENTS, MOMENTS)
def test_times_sort_as_text_like_they_sort_as_times(one: datetime, other: datetime) -> None:
    if rfc3339(one) < rfc3339(other):
        assert one < other


def test_a_ulid_has_the_published_form() -> None:
    """The example of the specification: 2016-07-30T23:36:16.385Z begins with 01ARYZ6S41."""
    assert encode_ulid(1_469_922_850_259, 0)[:10] == "01ARZ3NDEK"
    assert encode_ulid(1_469_918_176_385, 0)[:10] == "01ARYZ6S41"
    assert encode_ulid((1 << 48) - 1, (1 << 80) - 1) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


@given(PARTS)
def test_a_ulid_holds_its_time_and_randomness(parts: tuple[int, int]) -> None:
    ulid = encode_ulid(*parts)
    assert len(ulid) == 26
    assert divmod(decode(ulid), 1 << 80) == parts


@given(PARTS, PARTS)
def test_ulids_sort_by_time_and_then_by_randomness(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (encode_ulid(*one) < encode_ulid(*other)) == (one < other)


def test_identifiers_of_the_machine_differ_and_begin_with_its_time() -> None:
    clock = SystemClock()
    before = int(clock.now().timestamp() * 1000)
    made = {clock.ulid() for _ in range(100)}
    after = int(clock.now().timestamp() * 1000)
    assert len(made) == 100
    assert all(before <= decode(ulid) >> 80 <= after + 1 for ulid in made)


def test_the_machines_time_is_aware_and_its_durations_never_go_back() -> None:
    clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    first, second = clock.monotonic_s(), clock.monotonic_s()
    assert first <= second


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock()
    start, ids = clock.now(), [clock.ulid() for _ in range(3)]
    assert (clock.now(), clock.monotonic_s()) == (start, 0.0)
    clock.advance(90)
    ids.append(clock.ulid())
    assert (clock.now() - start, clock.monotonic_s()) == (timedelta(seconds=90), 90.0)
    assert ids == sorted(set(ids))
