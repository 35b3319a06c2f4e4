"""The apprentice without an outline: it looks around with the tools that it has, and says that this is all it does.

It knows the tools by the names and arguments that ARCHITECTURE.md lists, and uses those that it is shown.
"""

import json
import re
from collections.abc import Sequence

from geode.llm.apprentice.moves import Action, Call
from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult, ToolSchema

_FILES_READ_MAX = 3
_FILES_NAMED_MAX = 8
_QUOTED_CHARS = 120
_WORD = re.compile(r"[^\W\d_]{5,}")
_ADMISSION = (
    "I am a simulated model. I follow no outline here and do not understand the request; I only looked around in the"
    " workspace and changed nothing."
)


class Wanderer:
    """One session's apprentice without an outline. Each prompt sends it around once more."""

    def __init__(self, tools: Sequence[ToolSchema]) -> None:
        self._tools = frozenset(tool.name for tool in tools)
        self._begin("")

    def _begin(self, prompt: str) -> None:
        self._prompt = prompt
        self._asked: dict[str, Call] = {}  # by call id, in this turn
        self._files: list[str] = []
        self._seen: list[str] = []

    def read(self, message: Message) -> None:
        """Take in the next message of the conversation."""
        if message.role is Speaker.ASSISTANT:
            for use in message.tool_uses:
                self._asked[use.call_id] = Call(tool=use.name, arguments=use.arguments)
            return
        for block in message.blocks:
            if isinstance(block, ToolResult) and (call := self._asked.get(block.call_id)):
                self._read_result(call, block)
            elif isinstance(block, TextBlock) and block.origin is Origin.USER:
                self._begin(block.text)

    def _read_result(self, call: Call, result: ToolResult) -> None:
        lines = [line.strip() for line in result.text.splitlines() if line.strip()]
        if result.is_error:
            self._seen.append(f"{call.tool} gave me an error: {_quote(lines)}")
        elif call.tool == "list_files":
            self._files = [line for line in lines if not line.endswith("/")]
            named = ", ".join(self._files[:_FILES_NAMED_MAX]) or "none"
            self._seen.append(f"files at the top: {named}" + (" ..." if len(self._files) > _FILES_NAMED_MAX else ""))
        elif call.tool == "read_file":
            self._seen.append(f"{call.arguments} begins with: {_quote(lines)}")
        else:
            self._seen.append(f"{call.tool} {call.arguments} found {len(lines)} lines")

    def act(self) -> Action:
        """Return the next look, or the summary when everything was looked at once."""
        done = {call.tool for call in self._asked.values()}
        if "list_files" in self._tools - done:
            return _calls("list_files", {"path": "."})
        if "read_file" in self._tools - done and self._files:
            return _calls("read_file", *({"path": name} for name in self._worth_reading()))
        if "search" in self._tools - done and (word := self._longest_word()):
            return _calls("search", {"pattern": word})
        return Action(says="\n".join([_ADMISSION, *(f"- {line}" for line in self._seen)]))

    def _worth_reading(self) -> list[str]:
        words = {word.lower() for word in _WORD.findall(self._prompt)}

        def rank(name: str) -> tuple[bool, bool]:
            return (not any(word in name.lower() for word in words), not name.lower().startswith("readme"))

        return sorted(self._files, key=rank)[:_FILES_READ_MAX]

    def _longest_word(self) -> str:
        return max(_WORD.findall(self._prompt), key=len, default="")


def _calls(tool: str, *arguments: dict[str, str]) -> Action:
    return Action(calls=tuple(Call(tool=tool, arguments=json.dumps(a, ensure_ascii=False)) for a in arguments))


def _quote(lines: Sequence[str]) -> str:
    return repr(lines[0][:_QUOTED_CHARS]) if lines else "nothing"
