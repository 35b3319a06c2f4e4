"""A recording gives a model's replies again, byte for byte, and never for a question that was not asked."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.llm.errors import LLMError, RecordingDiverged
from geode.llm.messages import ModelResponse, StepSnapshot, StopReason, TextBlock, ToolUse
from geode.llm.recorded import Recorded, RecordedReply, Recording, RecordingAdapter, RecordingUnreadable
from geode.llm.usage import CostOrigin, Usage
from tests.doubles.toy_loop import snapshot


class Replies:
    """A model that gives what it was made with."""

    model = "anthropic/some-model"

    def __init__(self, replies: Sequence[ModelResponse | Exception]) -> None:
        self._replies = iter(replies)

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        return reply


CALL = ModelResponse(
    blocks=(TextBlock(text="Ich schaue nach. 보자"), ToolUse(call_id="c1", name="read_file", arguments='{"path": ')),
    stop=StopReason.TOOL_USE,
    usage=Usage(
        uncached_input_tokens=7, cache_read_tokens=3, output_tokens=2, cost_usd=0.01, cost_origin=CostOrigin.COMPUTED
    ),
    served_model="some-model-2",
    latency_ms=812,
    raw='[{"type":"thinking"}]',
)
ANSWER = ModelResponse(
    blocks=(TextBlock(text="Done."),),
    stop=StopReason.END_TURN,
    usage=Usage(),
    served_model="simulated/apprentice",
    latency_ms=3,
    simulated=True,
)
FIRST, SECOND, THIRD = (snapshot((), session=digest) for digest in ("d1", "d2", "d3"))


async def recorded_at(path: Path) -> Path:
    adapter = RecordingAdapter(Replies([CALL, ANSWER]), path)
    await adapter.acomplete(FIRST)
    await adapter.acomplete(SECOND)
    return path


async def test_a_replay_gives_what_was_recorded(tmp_path: Path) -> None:
    """Text, calls, raw content, usage and flags all come back, malformed arguments included."""
    recording = Recording.from_jsonl(await recorded_at(tmp_path / "r.jsonl"))
    replay = Recorded(recording, model="recorded/some-model")
    assert replay.model == "recorded/some-model"
    assert [await replay.acomplete(FIRST), await replay.acomplete(SECOND)] == [CALL, ANSWER]
    assert recording.torn == ""


async def test_recording_changes_nothing_and_keeps_a_reply_before_giving_it_on(tmp_path: Path) -> None:
    """The adapter is transparent; errors of the model pass through and leave no line."""
    path = tmp_path / "r.jsonl"
    adapter = RecordingAdapter(Replies([CALL, LLMError("later"), ANSWER]), path)
    assert adapter.model == "anthropic/some-model"
    assert await adapter.acomplete(FIRST) == CALL
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
    with pytest.raises(LLMError, match="later"):
        await adapter.acomplete(SECOND)
    assert await adapter.acomplete(SECOND) == ANSWER
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == '{"schema":"geode.recording/1"}'
    assert [json.loads(line)["history_digest"] for line in lines[1:]] == ["d1", "d2"]


async def test_a_strict_replay_stops_where_the_histories_part(tmp_path: Path) -> None:
    """A reply to another question would look like evidence about this one."""
    replay = Recorded(Recording.from_jsonl(await recorded_at(tmp_path / "r.jsonl")), model="recorded/m")
    await replay.acomplete(FIRST)
    with pytest.raises(RecordingDiverged, match=r"round 0.* d3.* reply 2 answered d2"):
        await replay.acomplete(THIRD)


async def test_a_lenient_replay_goes_on_where_the_histories_part(tmp_path: Path) -> None:
    """To see what a changed host makes of the same replies."""
    replay = Recorded(Recording.from_jsonl(await recorded_at(tmp_path / "r.jsonl")), model="recorded/m", strict=False)
    assert [await replay.acomplete(THIRD), await replay.acomplete(THIRD)] == [CALL, ANSWER]


@pytest.mark.parametrize("strict", [True, False])
async def test_an_exhausted_recording_says_so(strict: bool) -> None:
    """It never repeats its last reply."""
    reply = RecordedReply(history_digest="d1", response=ANSWER)
    replay = Recorded(Recording().append(reply), model="recorded/m", strict=strict)
    await replay.acomplete(FIRST)
    with pytest.raises(RecordingDiverged, match="exhausted, all of its 1 replies"):
        await replay.acomplete(SECOND)


@given(cut=st.integers(min_value=1, max_value=200))
async def test_a_torn_last_line_is_reported_and_skipped(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """A crash while writing loses at most the reply that was being written, and it is said what was lost."""
    path = await recorded_at(tmp_path_factory.mktemp("torn") / "r.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    torn = Recording.from_jsonl(path)
    assert torn.replies == Recording.from_jsonl(path).replies[:1]
    assert torn.torn.encode() == whole[:-cut].split(b"\n")[-1]
    assert torn.torn


async def test_a_torn_recording_can_be_continued(tmp_path: Path) -> None:
    """The next reply stands on a line of its own."""
    path = await recorded_at(tmp_path / "r.jsonl")
    path.write_bytes(path.read_bytes()[:-10])
    await RecordingAdapter(Replies([ANSWER]), path).acomplete(THIRD)
    recording = Recording.from_jsonl(path)
    assert [(reply.history_digest, reply.response) for reply in recording.replies] == [("d1", CALL), ("d3", ANSWER)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no complete first line"),
        ('{"schema":"geode.recording/2"}\n', r"geode\.recording/2.*this version reads"),
        ("[]\n", r"this version reads"),
        ("nonsense\n", "nonsense"),
        ('{"schema":"geode.recording/1"}\n{"history_digest":"d"}\n', "line 2 is no reply .response: Field required"),
        ('{"schema":"geode.recording/1"}\n\n', "line 2 is no reply"),
        (b"\xff\xfe\n", "this version reads"),
        (b'{"schema":"geode.recording/1"}\n{"history_digest":"\xff"}\n', "line 2 is no reply"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: str | bytes, words: str) -> None:
    """A newer version, another file and damage are three clear errors, never an empty recording."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RecordingUnreadable, match=words):
        Recording.from_jsonl(path)
