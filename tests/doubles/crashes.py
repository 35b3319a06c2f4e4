"""What a killed process leaves behind, at every moment at which it could have been killed."""

import asyncio
import hashlib
import shutil
from pathlib import Path

from geode.llm.messages import Message, ModelResponse, Origin, Speaker, StepSnapshot, TextBlock
from tests.doubles.models import calls, says
from tests.doubles.sessions import Bench


class Camera:
    """Copies a folder at each click: the files are what the kernel would keep if the process died in that moment.

    Pictures that are equal are kept once. `watch` clicks before every SQL statement of a bench.
    """

    def __init__(self, folder: Path, album: Path) -> None:
        self._folder, self._album = folder, album
        self.pictures: list[tuple[str, Path]] = []
        self._last = ""

    def click(self, moment: str) -> None:
        files = sorted(path for path in self._folder.rglob("*") if path.is_file())
        digest = hashlib.sha256()
        for path in files:
            digest.update(str(path.relative_to(self._folder)).encode() + b"\0" + path.read_bytes())
        if digest.hexdigest() != self._last:
            self._last = digest.hexdigest()
            picture = self._album / f"{len(self.pictures):03d}"
            shutil.copytree(self._folder, picture)
            self.pictures.append((moment, picture))

    def watch(self, bench: Bench) -> None:
        for name, database in (("checkpoint", bench.checkpoint._db), ("receipts", bench.receipts._db)):
            database._connection.set_trace_callback(lambda sql, name=name: self.click(f"{name}: {sql[:60]}"))


class Planner:
    """A model that goes by the history alone, and so goes on sensibly after a restart.

    It asks for `mark` with n = 0, then 1 and 2 together, then says `answer k`, where k counts the instructions of the
    host since the prompt. Calls whose results were lost it does not repeat. `odd` replaces the reply to a history of
    that many messages.
    """

    model = "simulated/planner"

    def __init__(self, odd: dict[int, ModelResponse] | None = None) -> None:
        self._odd = odd or {}
        self.asked: list[StepSnapshot] = []

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        self.asked.append(snapshot)
        await asyncio.sleep(0)
        if reply := self._odd.get(len(snapshot.messages)):
            return reply
        since = _since_prompt(snapshot.messages)
        asked = [use for message in since for use in message.tool_uses if use.name == "mark"]
        turn = sum(_is_prompt(message) for message in snapshot.messages)
        match len(asked):
            case 0:
                return calls((f"t{turn}a", "mark", f'{{"n":"{turn}-0"}}'), text="- [x] begin\n- [ ] end")
            case 1:
                return calls((f"t{turn}b", "mark", f'{{"n":"{turn}-1"}}'), (f"t{turn}c", "mark", f'{{"n":"{turn}-2"}}'))
            case _:
                return says(f"answer {sum(_is_instruction(message) for message in since)}")


def _since_prompt(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    last = max(at for at, message in enumerate(messages) if _is_prompt(message))
    return messages[last:]


def _is_prompt(message: Message) -> bool:
    return any(isinstance(block, TextBlock) and block.origin is Origin.USER for block in message.blocks)


def _is_instruction(message: Message) -> bool:
    only_text = all(isinstance(block, TextBlock) for block in message.blocks)
    return message.role is Speaker.USER and only_text and not _is_prompt(message)
