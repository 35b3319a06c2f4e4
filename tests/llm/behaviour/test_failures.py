"""What goes wrong between the loop and a model ends, or is mended, in the same way on all wires."""

import asyncio

import pytest

from geode.dev.fake_provider.script import Call, Cut, Failure, HttpReply, Step, StreamError
from geode.events import AttemptFailed, ContextCompacted
from geode.llm.messages import DeltaKind
from geode.llm.retry import RetryPolicy
from geode.loop.turn import TurnStop
from geode.tools.spec import ToolOutput
from tests.doubles.effects import OutsideWorld, marking_tool, returning, tool
from tests.llm.behaviour.conftest import House
from tests.llm.behaviour.test_turns import THOUGHT

LONG = "Word after word, so that it comes in many pieces. " * 20
MARK = Call(name="mark", arguments={"n": 1})


@pytest.fixture
def world(tmp_path):
    return OutsideWorld(tmp_path / "effects.log")


@pytest.mark.parametrize("drop", [False, True], ids=["closed", "connection lost"])
async def test_a_stream_that_is_cut_is_asked_again_and_none_of_its_calls_is_run(
    house: House, world: OutsideWorld, drop: bool
) -> None:
    """PROVIDERS 7, 25: the half that came looks whole, but for its last event."""
    whole = Step(text=LONG, calls=(MARK,))
    house.play(
        Step(text=LONG, calls=(MARK,), cut=Cut(after_events=30, drop=drop)),
        whole,
        Step(text="Done."),
    )
    bench = house.open(marking_tool(world))

    result = await bench.loop.arun("Mark it.")

    assert (result.stop, result.text) == (TurnStop.COMPLETED, "Done.")
    assert world.effects == ['mark {"n": 1}']
    failed = [event for event in bench.events if isinstance(event, AttemptFailed)]
    assert [event.error for event in failed] == ["StreamCut"]
    assert failed[0].request_id
    assert [delta.kind for delta in house.seen].count(DeltaKind.AGAIN) == 1


@pytest.mark.parametrize("drop", [False, True], ids=["closed", "connection lost"])
async def test_a_stream_that_is_cut_is_never_a_turn(house: House, drop: bool) -> None:
    """PROVIDERS 7: also where nobody asks again."""
    house.play(Step(text=LONG, cut=Cut(after_events=30, drop=drop)))

    result = await house.open(policy=RetryPolicy(requests=1)).loop.arun("Answer.")

    assert result.stop is TurnStop.MODEL_FAILED
    assert "StreamCut" in result.detail
    assert result.text == ""


STORM: tuple[tuple[Step, str], ...] = (
    (Step(failure=Failure.RATE_LIMITED, retry_after_s=7), "RateLimited"),
    (Step(failure=Failure.UNAVAILABLE), "Overloaded"),
    (Step(failure=Failure.SERVER), "Overloaded"),
    (Step(text=LONG, stream_error=StreamError(after_events=6, failure=Failure.OVERLOADED)), "Overloaded"),
    (Step(failure=Failure.DROPPED), "StreamCut"),
)


async def test_a_storm_of_failures_is_weathered_by_the_one_owner_of_retries(house: House) -> None:
    """PROVIDERS 1, 2, 3, 6, 25: each request is ours, each wait as asked for or doubled, each failure on the record."""
    house.play(*(step for step, _ in STORM), Step(text="At last."))
    bench = house.open(policy=RetryPolicy(jitter=0, billed_retries=5))

    result = await bench.loop.arun("Answer.")

    assert (result.stop, result.text) == (TurnStop.COMPLETED, "At last.")
    assert len(house.bodies) == len(STORM) + 1
    assert house.waited_s == [7, 2, 4, 8, 16]
    failed = [event for event in bench.events if isinstance(event, AttemptFailed)]
    assert [event.error for event in failed] == [error for _, error in STORM]
    assert [event.status // 100 for event in failed if event.status] == [4, 5, 5, 2, 2]
    assert all(event.request_id for event in failed)
    assert result.rounds == 1, "what failed is no round of the model"


async def test_a_storm_that_does_not_end_is_left_after_a_limited_number_of_requests(house: House) -> None:
    """PROVIDERS 1, 3: by our policy, not by an SDK's."""
    house.play(then=Step(failure=Failure.RATE_LIMITED))

    result = await house.open(policy=RetryPolicy(requests=4, jitter=0)).loop.arun("Answer.")

    assert result.stop is TurnStop.MODEL_FAILED
    assert "RateLimited" in result.detail
    assert "4 attempts" in result.detail
    assert len(house.bodies) == 4


async def test_a_wait_of_a_day_is_not_waited(house: House) -> None:
    """PROVIDERS 3: it fails fast, and says so."""
    house.play(Step(failure=Failure.RATE_LIMITED, retry_after_s=86_400))

    result = await house.open().loop.arun("Answer.")

    assert result.stop is TurnStop.MODEL_FAILED
    assert "WaitTooLong" in result.detail
    assert len(house.bodies) == 1
    assert house.waited_s == []


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure.BAD_KEY, "AuthenticationFailed"),
        (Failure.CREDITS, "PaymentRequired"),
        (Failure.BAD_REQUEST, "RequestInvalid"),
        (Failure.HTML_200, "ResponseInvalid"),
    ],
)
async def test_what_waiting_does_not_mend_is_asked_once(house: House, failure: Failure, error: str) -> None:
    """PROVIDERS 2, 4, 9: the reason is told, with the provider's name of the request."""
    house.play(Step(failure=failure))

    result = await house.open().loop.arun("Answer.")

    assert result.stop is TurnStop.MODEL_FAILED
    assert result.detail.startswith(error)
    assert "request req_fake_" in result.detail
    assert house.double.key(house.double.requests[0].route) not in result.detail
    assert len(house.bodies) == 1


async def test_a_request_that_is_too_long_is_sent_again_with_less(house: House) -> None:
    """PROVIDERS 8: whatever the wire calls it. Our own estimate had let it pass."""
    look, window = Call(name="look", arguments={}), 6_000
    house.play(*(Step(calls=(look,)),) * 3, Step(text="Seen."), context_tokens=window)
    bench = house.open(tool(returning(ToolOutput(text="x" * 10_000)), name="look"))

    result = await bench.loop.arun("Look three times.")

    assert (result.stop, result.text) == (TurnStop.COMPLETED, "Seen.")
    assert [event.elided_rounds for event in bench.events if isinstance(event, ContextCompacted)]
    refused = [request for request in house.double.requests if request.status != 200]
    assert refused
    assert all(len(request.raw) > 4 * window for request in refused)
    assert house.waited_s == [], "it is no failure that waiting mends"


async def test_a_request_that_stays_too_long_ends_the_turn_as_such(house: House) -> None:
    """PROVIDERS 8."""
    house.play(Step(text="never given"), context_tokens=10)

    result = await house.open().loop.arun("A prompt, longer than that window.")

    assert result.stop is TurnStop.CONTEXT_FULL
    assert len(house.bodies) == 1


class Watched:
    """Says when a reply has begun to come."""

    def __init__(self, house: House) -> None:
        self.began = asyncio.Event()
        keep = house.watch

        def watch(delta):
            keep(delta)
            self.began.set()

        house.watch = watch


async def _cancelled(turn, began: asyncio.Event) -> None:
    before = asyncio.all_tasks()
    task = asyncio.create_task(turn)
    await asyncio.wait_for(began.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)  # the loop closes the SDK's generators in a task of its own
    await asyncio.sleep(0)
    assert asyncio.all_tasks() - {task} == before, "no task outlives the turn"


async def test_a_turn_that_is_cancelled_in_mid_stream_leaves_the_line_and_can_be_taken_up(
    house: House, world: OutsideWorld
) -> None:
    """The provider sees that nobody listens any longer, and is asked again only when somebody goes on."""
    house.play(Step(text=LONG, calls=(MARK,), event_ms=20), Step(calls=(MARK,)), Step(text="Done."))
    watched = Watched(house)
    bench = house.open(marking_tool(world))

    await _cancelled(bench.loop.arun("Mark it."), watched.began)
    assert await asyncio.to_thread(house.double.wait, 1, abandoned=1)
    assert world.effects == []
    assert len(house.bodies) == 1, "a cancelled request is not sent again"

    result = await house.open(marking_tool(world)).loop.aresume()
    assert (result.stop, result.text) == (TurnStop.COMPLETED, "Done.")
    assert world.effects == ['mark {"n": 1}']


@pytest.mark.parametrize("count", range(1, 9))
async def test_a_session_is_taken_up_from_its_checkpoint_with_one_result_for_each_call(
    house: House, world: OutsideWorld, count: int
) -> None:
    """PROVIDERS 11, 12, 14: the process is gone while calls are under way; another one reads what it wrote."""
    stuck = asyncio.Event()

    async def hang(_):
        stuck.set()
        await asyncio.get_running_loop().create_future()

    def tools() -> tuple:
        return marking_tool(world), tool(hang, name="hang", timeout_s=9_999)

    asked = (*(Call(name="mark", arguments={"n": n}) for n in range(count - 1)), Call(name="hang", arguments={}))
    house.play(Step(thinking=THOUGHT, text="I go.", calls=asked), Step(text="Done."))
    bench = house.open(*tools())
    await _cancelled(bench.loop.arun("Mark, then hang."), stuck)

    result = await house.open(*tools()).loop.aresume()

    answers = house.wire.answers(house.bodies[1])
    assert len(answers) == count
    assert [call_id for call_id, _ in answers] == [use.call_id for use in bench.loop.messages[1].tool_uses]
    assert [text for _, text in answers[:-1]] == ["marked"] * (count - 1)
    assert "cancelled" in answers[-1][1].lower()
    assert len(world.effects) == count - 1, "nothing is done twice"
    assert result.stop is not TurnStop.MODEL_FAILED


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "text/html", "<p>x</p>" * 1_100_000),
        (400, "text/html", "<p>x</p>" * 1_100_000),
        (200, "text/event-stream", "data: " + "x" * 8_800_000),
    ],
    ids=["page", "error", "event"],
)
async def test_a_reply_without_end_is_no_answer_and_is_not_asked_for_again(
    house: House, status: int, kind: str, body: str
) -> None:
    """PROVIDERS 4: a proxy that sends and sends must not fill our memory, and would do so again."""
    house.play(Step(failure=HttpReply(status=status, body=body, content_type=kind)), Step(text="Not asked."))

    result = await house.open().loop.arun("Answer.")

    assert result.stop is TurnStop.MODEL_FAILED
    assert "longer than 8,000,000 bytes; check the base URL of the route" in result.detail
    assert len(house.bodies) == 1
