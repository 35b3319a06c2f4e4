"""What was spent is shown as far as it is known, and what is not known beside it."""

import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from geode.llm.usage import Usage
from geode.records.costs import By, CostLine, Costs
from geode.records.spend import Spender, Spending

NOW = datetime(2030, 1, 2, 12, tzinfo=UTC)
GONE = 2**22 + 1  # no process has this id


def spent(cost_usd: float | None, *, model: str = "a/m", hours_ago: float = 0, experiment: str = "") -> Spending:
    usage = Usage(uncached_input_tokens=10, cache_read_tokens=5, output_tokens=3, reasoning_tokens=1, cost_usd=cost_usd)
    return Spending(
        at=NOW - timedelta(hours=hours_ago),
        spender=Spender(session="S", experiment=experiment),
        model=model,
        usage=usage,
        most_usd=Decimal("0.5"),
    )


def begun(pid: int) -> Spending:
    return Spending(
        at=NOW, spender=Spender(session="S"), model="a/m", usage=None, most_usd=Decimal("0.5"), pid=pid, ended=False
    )


def test_known_unknown_and_open_money_are_three_things() -> None:
    """A total that took the unknown for nothing would be a lie."""
    rows = [spent(0.25), spent(None), begun(os.getpid()), begun(GONE)]
    assert Costs.of(rows, By.MODEL, "", NOW).total == CostLine(
        name="total",
        requests=4,
        cost_usd=Decimal("0.25"),
        unknown=2,
        unknown_usd_max=Decimal("1.0"),
        open=1,
        open_usd_max=Decimal("0.5"),
        input_tokens=30,
        cached_tokens=10,
        output_tokens=6,
        reasoning_tokens=2,
    )


def test_lines_are_by_name_the_dearest_first_and_days_in_order() -> None:
    """What costs most is what is looked for."""
    rows = [spent(0.1, experiment="x"), spent(0.3, hours_ago=24), spent(0.2, model="b/m")]
    by = {key: [(line.name, line.cost_usd) for line in Costs.of(rows, key, "", NOW).lines] for key in By}
    assert by[By.MODEL] == [("a/m", Decimal("0.4")), ("b/m", Decimal("0.2"))]
    assert by[By.DAY] == [("2030-01-01", Decimal("0.3")), ("2030-01-02", Decimal("0.3"))]
    assert by[By.EXPERIMENT] == [("(none)", Decimal("0.5")), ("x", Decimal("0.1"))]
    assert by[By.SESSION] == [("S", Decimal("0.6"))]
    assert by[By.ROLE] == [("target", Decimal("0.6"))]


def test_earlier_days_can_be_left_out() -> None:
    """The day is that of UTC, as for the cap of a day."""
    rows = [spent(0.1), spent(0.3, hours_ago=24)]
    assert Costs.of(rows, By.MODEL, "2030-01-02", NOW).total.cost_usd == Decimal("0.1")


def test_the_table_says_what_is_not_known() -> None:
    """A person reads the table only."""
    text = Costs.of([spent(0.25), spent(None), begun(os.getpid())], By.MODEL, "", NOW).text()
    assert "unknown: 1 requests whose cost nobody knows, 0.5000 USD at the most" in text
    assert "open: 1 requests under way hold 0.5000 USD." in text
    assert text.splitlines()[1].split() == ["a/m", "0.2500", "3", "1", "1", "30", "10", "6", "2"]
    assert Costs.of([], By.MODEL, "", NOW).text() == "No request to a billed model."
