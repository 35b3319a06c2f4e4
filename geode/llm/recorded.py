"""Records a model's replies, and gives them again: an old session runs without asking, or paying, a model.

A recording is a JSONL file. Its first line is `{"schema":"geode.recording/1"}`; each later line is a `RecordedReply`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from geode.llm.errors import RecordingDiverged
from geode.llm.messages import LLMAdapter, ModelResponse, StepSnapshot

SCHEMA = "geode.recording/1"
_HEADER = json.dumps({"schema": SCHEMA}, separators=(",", ":"))


class RecordingUnreadable(ValueError):  # noqa: N818  (named by what is wrong)
    """The file is no recording, or one of a newer version, or is damaged before its last line."""


class RecordedReply(BaseModel):
    """One reply, and the digest of the history that it answered."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    history_digest: str
    response: ModelResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Replies in the order in which they were given.

    `torn` is what was skipped of a last line that was not written to its end, empty if there was none.
    """

    replies: tuple[RecordedReply, ...] = ()
    torn: str = ""

    @classmethod
    def from_jsonl(cls, path: Path) -> Self:
        """Read the recording at `path`.

        Raises:
            RecordingUnreadable: naming the line and what to do.
        """
        *lines, torn = path.read_bytes().split(b"\n")
        if not lines:
            raise RecordingUnreadable(f"{path} has no complete first line; a recording begins with {_HEADER}")
        _check_header(path, lines[0])
        replies = tuple(_reply(path, number, line) for number, line in enumerate(lines[1:], 2))
        return cls(replies=replies, torn=torn.decode("utf-8", "replace"))

    def append(self, reply: RecordedReply) -> "Recording":
        """Return this recording with one reply more."""
        return Recording(replies=(*self.replies, reply), torn=self.torn)


class RecordingAdapter:
    """Implements `LLMAdapter`: asks `inner`, and writes each of its replies to `path` before it is given on.

    An existing recording is continued; a torn last line of it is cut off, since no reply of it was ever given on.

    Raises:
        RecordingUnreadable: if there is another kind of file at `path`.
    """

    def __init__(self, inner: LLMAdapter, path: Path) -> None:
        self._inner = inner
        self._path = path
        if path.exists() and path.stat().st_size:
            torn = Recording.from_jsonl(path).torn
            if torn:
                whole = path.read_bytes()
                path.write_bytes(whole[: whole.rfind(b"\n") + 1])
        else:
            self._write(_HEADER)

    @property
    def model(self) -> str:
        """See `LLMAdapter.model`."""
        return self._inner.model

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """See `LLMAdapter.acomplete`. What `inner` raises is not recorded."""
        response = await self._inner.acomplete(snapshot)
        self._write(RecordedReply(history_digest=snapshot.history_digest, response=response).model_dump_json())
        return response

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class Recorded:
    """Implements `LLMAdapter`: gives the replies of a recording in their order.

    `strict` holds each question against the one that was recorded. `served_model` and `simulated` are as recorded.
    """

    def __init__(self, recording: Recording, *, model: str, strict: bool = True) -> None:
        self._replies = recording.replies
        self._model = model
        self._strict = strict
        self._given = 0

    @property
    def model(self) -> str:
        """See `LLMAdapter.model`."""
        return self._model

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """Give the next reply.

        Raises:
            RecordingDiverged: if there is none left, or it answered another history.
        """
        if self._given == len(self._replies):
            raise RecordingDiverged(
                f"round {snapshot.round}: the recording is exhausted, all of its {len(self._replies)} replies were"
                " given; the session asks for more rounds than were recorded"
            )
        reply = self._replies[self._given]
        if self._strict and reply.history_digest != snapshot.history_digest:
            raise RecordingDiverged(
                f"round {snapshot.round}: the history has the digest {snapshot.history_digest}, but reply"
                f" {self._given + 1} answered {reply.history_digest}; prompt, tools or hooks differ from the recorded"
                " session. Replay without strict to go on all the same"
            )
        self._given += 1
        return reply.response


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    schema = header.get("schema") if isinstance(header, dict) else None
    if schema != SCHEMA:
        raise RecordingUnreadable(
            f"{path} begins with {line[:80]!r}; this version reads recordings that begin with {_HEADER}"
        )


def _reply(path: Path, number: int, line: bytes) -> RecordedReply:
    try:
        return RecordedReply.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors()[0]
        raise RecordingUnreadable(
            f"{path}, line {number} is no reply ({'.'.join(map(str, problem['loc'])) or 'line'}: {problem['msg']});"
            " restore the file, or cut it off before this line"
        ) from error
