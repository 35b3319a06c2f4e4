"""What answers where no script does: a small agent that looks at a few files and says what it saw.

It decides from the request alone, so the same request gets the same reply, and nothing of it is kept.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from geode.dev.fake_provider.script import Call, Step
from geode.dev.fake_provider.wire import Asked, Tool

_CALLS_MAX: Final = 3
_SHOWN_CHARS: Final = 160
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,4}\b")
_FILES_WANTED = re.compile(
    r"\b(files?|folders?|director(?:y|ies)|workspace|read|lists?|change|fix|repair|find)\b", re.I
)


def play(asked: Asked) -> Step:
    """Return the agent's next step: list, read what is named, answer; or call the tool that is asked for, or forced."""
    tools = {tool.name: tool for tool in asked.tools}
    if asked.forced in tools:
        tool = tools[asked.forced]
        return Step(calls=(Call(name=tool.name, arguments=_arguments(tool.schema, asked.prompt)),))
    done = len(asked.results)
    if done < _CALLS_MAX and (call := _next_call(asked, tools)):
        return Step(text="I take a look." if not done else "", calls=(call,))
    return Step(text=_answer(asked))


def _next_call(asked: Asked, tools: Mapping[str, Tool]) -> Call | None:
    called = [name for name, _ in asked.results]
    named = [tool for tool in asked.tools if re.search(rf"\b{re.escape(tool.name)}\b", asked.prompt)]
    files = "read_file" in tools and (_FILES_WANTED.search(asked.prompt) or _FILE.search(asked.prompt))
    if files and "list_files" in tools and not called:
        return Call(name="list_files", arguments={"path": "."})
    if files and called.count("read_file") < 2 and (path := _unread(asked, called.count("read_file"))):
        return Call(name="read_file", arguments={"path": path})
    for tool in named:
        if tool.name not in called:
            return Call(name=tool.name, arguments=_arguments(tool.schema, asked.prompt))
    return None


def _unread(asked: Asked, read: int) -> str | None:
    """Return the next file: those that the prompt names before those that were listed."""
    listed = [line for name, text in asked.results if name == "list_files" for line in text.splitlines()]
    found = [line.strip() for line in listed if _FILE.fullmatch(line.strip())]
    named = [path.removeprefix("/workspace/") for path in _FILE.findall(asked.prompt)]
    if found:
        named = [path for path in named if path in found]
    paths = list(dict.fromkeys([*named, *found]))
    return paths[read] if read < len(paths) else None


def _arguments(schema: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    """Fill what the schema requires; quoted words of the prompt serve as texts, in order."""
    words = re.findall(r"['\"`]([^'\"`]+)['\"`]", prompt)
    properties = schema.get("properties", {})
    filled: dict[str, Any] = {}
    for name in schema.get("required", []):
        wanted = properties.get(name, {})
        if choices := wanted.get("enum"):
            filled[name] = choices[0]
            continue
        match wanted.get("type"):
            case "integer" | "number":
                filled[name] = wanted.get("minimum", 1)
            case "boolean":
                filled[name] = False
            case "array":
                filled[name] = []
            case "object":
                filled[name] = _arguments(wanted, prompt)
            case _:
                filled[name] = words.pop(0) if words else "example"
    return filled


def _answer(asked: Asked) -> str:
    if not asked.results:
        return f"This is the fake provider; no model was asked. You said: {_short(asked.prompt)}"
    seen = "\n".join(f"- {name}: {_short(text)}" for name, text in asked.results)
    return f"This is the fake provider; no model was asked. I looked, and changed nothing. What I saw:\n{seen}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
