"""Addresses on MLflow's pages. That they lead where they say is tried in a browser, in tests/done."""

from urllib.parse import parse_qsl, unquote

from experiments.tracking_links import Links, compare_link
from experiments.tracking_store import TrackedExperiment
from tests.doubles.cells import make_cells

LETTERS = {"baseline": {"a": "PF"}, "with=odd+name": {"a": "PF"}}
LINKS = Links(
    home=TrackedExperiment(experiment_id="7", artifact_location=""),
    parent_id="parent",
    baseline="baseline",
    run_ids={"baseline": "base", "with=odd+name": "cand"},
)
RECORD = make_cells(LETTERS)[1].episodes[0].record


def query(address: str | None) -> list[tuple[str, str]]:
    assert address is not None
    return parse_qsl(address.partition("?")[2])


def test_every_address_holds_on_any_host_and_port() -> None:
    """They are stored, and read wherever MLflow is served by then."""
    for address in (
        LINKS.comparison(),
        LINKS.cell("baseline"),
        LINKS.pairs("with=odd+name", RECORD),
        LINKS.episode("with=odd+name", RECORD),
        compare_link("7", ["base", "cand"]),
    ):
        assert address is not None
        assert address.startswith("#/")
        assert not set(address) & set(" ()|<>\"'`"), "what would end a link in Markdown"


def test_an_episode_opens_on_the_list_of_its_variant_and_task_at_any_age() -> None:
    """MLflow's own default hides what is older than a week."""
    (time, *tags, (name, trace_id)) = query(LINKS.episode("with=odd+name", RECORD))
    assert time == ("startTimeLabel", "ALL")
    # MLflow takes what follows an equals sign for the value, and unescapes both once more.
    assert [[unquote(part) for part in text.split("=", 1)] for _, text in tags] == [
        ["geode.task", "a"],
        ["geode.variant", "with=odd+name"],
    ]
    assert all(text.count("=") == 1 for _, text in tags)
    assert name == "selectedEvaluationId"
    assert trace_id.startswith("tr-")


def test_a_pair_opens_beside_the_baseline() -> None:
    """Both ends of one block, in one step."""
    assert dict(query(LINKS.pairs("with=odd+name", RECORD)))["compareToRunUuid"] == "base"
    assert [name for name, _ in query(LINKS.pairs("with=odd+name"))] == ["compareToRunUuid"]


def test_a_cell_that_is_not_written_has_no_address() -> None:
    """A dead link is worse than none."""
    assert LINKS.cell("other") is None
    assert LINKS.pairs("other") is None
    assert LINKS.episode("other", RECORD) is None
