"""A loop in memory that is just enough to watch a model work: tools on a dictionary of files, and three hooks' texts.

It is a few hundred times quicker than the real loop, so that rates can be estimated from thousands of episodes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import jsonschema
from pydantic import JsonValue

from geode.llm.messages import (
    LLMAdapter,
    Message,
    ModelResponse,
    Origin,
    Speaker,
    StepSnapshot,
    TextBlock,
    ToolResult,
    ToolSchema,
    ToolUse,
)


def _schema(required: list[str], **properties: str) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(required),
        "additionalProperties": False,
    }


SCHEMAS: dict[str, dict[str, JsonValue]] = {
    "list_files": _schema([], path="string"),
    "read_file": _schema(["path"], path="string", start_line="integer", line_count="integer"),
    "write_file": _schema(["path", "content"], path="string", content="string"),
    "edit_file": _schema(["path", "old", "new"], path="string", old="string", new="string"),
    "search": _schema(["pattern"], pattern="string", path="string", glob="string"),
    "shell": _schema(["command"], command="string", timeout_s="number"),
}
TOOLS = tuple(ToolSchema(name=name, description=f"The tool {name}.", input_schema=s) for name, s in SCHEMAS.items())
_VALIDATORS = {name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()}

PREAMBLE = "Your answer was checked and is not accepted yet."
REQUIRE_TEST_RUN = (
    "You changed files and have not run the tests or checks since. Run the test or check command, read its output, fix"
    " what it reports, then answer."
)
TEST_FAILED = (
    "The last test or check that you ran failed. Read its output, fix what it reports, run the test or check command"
    " again, then answer."
)
PROTECT_TESTS = (
    "refused by hook: {path} is a test or check file, and those are read-only here. Change the code under test instead."
)
STOP_REPEATS = (
    "refused by hook: this exact call was already made {times} times with the same result. Do something different."
)


class Hook(StrEnum):
    """The hooks that this loop can play."""

    REQUIRE_TEST_RUN = "require_test_run"
    PROTECT_TESTS = "protect_tests"
    STOP_REPEATS = "stop_repeats"


TEXTS: Mapping[Hook, str] = {  # what each of them says; `TEST_FAILED` goes with the first
    Hook.REQUIRE_TEST_RUN: REQUIRE_TEST_RUN,
    Hook.PROTECT_TESTS: PROTECT_TESTS,
    Hook.STOP_REPEATS: STOP_REPEATS,
}


@dataclass(slots=True, kw_only=True)
class ToyLoop:
    """Plays one prompt. `texts` are what the hooks at work say; `run` executes a shell command on the files."""

    files: dict[str, str]
    run: Callable[[Mapping[str, str], str], tuple[int, str]]
    system: str = "You work in /workspace."
    tools: tuple[ToolSchema, ...] = TOOLS
    texts: Mapping[Hook, str] = field(default_factory=dict)
    rounds_max: int = 40
    repairs: int = 2
    repeats_allowed: int = 2
    messages: list[Message] = field(default_factory=list)
    responses: list[ModelResponse] = field(default_factory=list)
    answer: str | None = None
    _unchecked: bool = False
    _failing: bool = False
    _made: dict[tuple[str, str, str], int] = field(default_factory=dict)

    async def play(self, model: LLMAdapter, text: str = "Do the task.", origin: Origin = Origin.USER) -> "ToyLoop":
        """Say `text` to the model, and go on round by round until an answer stands or a limit ends it."""
        self.messages.append(Message(role=Speaker.USER, blocks=(TextBlock(text=text, origin=origin),)))
        for _ in range(self.rounds_max):
            response = await model.acomplete(self.snapshot())
            self.responses.append(response)
            message = Message(role=Speaker.ASSISTANT, blocks=response.blocks, raw=response.raw)
            self.messages.append(message)
            if message.tool_uses:
                results = tuple(self._result(use) for use in message.tool_uses)
                self.messages.append(Message(role=Speaker.USER, blocks=results))
            elif (demand := self._demand()) and self.repairs:
                self.repairs -= 1
                block = TextBlock(text=f"{PREAMBLE} {demand}", origin=Origin.HOST)
                self.messages.append(Message(role=Speaker.USER, blocks=(block,)))
            else:
                self.answer = message.text
                break
        return self

    def snapshot(self, messages: tuple[Message, ...] | None = None) -> StepSnapshot:
        """Return what the model is asked next, or what it would be asked after `messages`."""
        return snapshot(tuple(self.messages) if messages is None else messages, system=self.system, tools=self.tools)

    @property
    def calls(self) -> list[ToolUse]:
        """All calls so far."""
        return [use for message in self.messages for use in message.tool_uses]

    def _demand(self) -> str:
        if Hook.REQUIRE_TEST_RUN not in self.texts or not (self._failing or self._unchecked):
            return ""
        return TEST_FAILED if self._failing else self.texts[Hook.REQUIRE_TEST_RUN]

    def _result(self, use: ToolUse) -> ToolResult:
        try:
            text, failed = self._run(use), False
        except (ValueError, KeyError) as error:
            text, failed = str(error.args[0]), True
        return ToolResult(call_id=use.call_id, text=text, is_error=failed or text.startswith("exit code: 1"))

    def _run(self, use: ToolUse) -> str:
        if use.name not in {tool.name for tool in self.tools}:
            raise ValueError(f"there is no tool named {use.name!r}")
        try:
            arguments = json.loads(use.arguments)
        except ValueError as error:
            raise ValueError(f"refused at schema: the arguments are not valid JSON ({error})") from error
        if problem := next(_VALIDATORS[use.name].iter_errors(arguments), None):
            raise ValueError(f"refused at schema: {problem.message}")
        path = str(arguments.get("path", ""))
        if Hook.PROTECT_TESTS in self.texts and use.name in {"edit_file", "write_file"} and _is_test(path):
            raise ValueError(self.texts[Hook.PROTECT_TESTS].format(path=path))
        made = [times for (name, text, _), times in self._made.items() if (name, text) == (use.name, use.arguments)]
        if Hook.STOP_REPEATS in self.texts and max(made, default=0) >= self.repeats_allowed:
            raise ValueError(self.texts[Hook.STOP_REPEATS].format(times=max(made)))
        text = self._do(use.name, arguments)
        if use.name in {"edit_file", "write_file", "shell"} and not text.startswith("exit code: 1"):
            self._made.clear()
        same = (use.name, use.arguments, text)
        self._made[same] = self._made.get(same, 0) + 1
        return text

    def _do(self, name: str, arguments: dict[str, str]) -> str:
        path = arguments.get("path", ".")
        match name:
            case "list_files":
                return "\n".join(sorted(self.files))
            case "read_file":
                if path not in self.files:
                    raise KeyError(f"no such file: {path}")
                return self.files[path]
            case "write_file":
                self.files[path] = arguments["content"]
                self._unchecked = True
                return f"wrote {path} ({len(arguments['content'])} characters)"
            case "edit_file":
                return self._edit(path, arguments["old"], arguments["new"])
            case "search":
                hits = [f"{p}:{n}: {line}" for p, t in self.files.items() for n, line in enumerate(t.splitlines(), 1)]
                return "\n".join(hit for hit in hits if arguments["pattern"] in hit) or "(no match)"
        code, output = self.run(self.files, arguments["command"])
        self._unchecked, self._failing = False, code != 0
        return f"exit code: {code}\n{output or '(no output)'}"

    def _edit(self, path: str, old: str, new: str) -> str:
        if (count := self.files.get(path, "").count(old)) != 1:
            raise ValueError(f"old text not found in {path}" if not count else f"old text occurs {count} times")
        self.files[path] = self.files[path].replace(old, new)
        self._unchecked = True
        return f"edited {path}: 1 replacement"


def snapshot(
    messages: tuple[Message, ...], *, system: str = "", tools: tuple[ToolSchema, ...] = TOOLS, session: str = "s"
) -> StepSnapshot:
    """Return a step that asks about `messages`."""
    return StepSnapshot(
        session_id=session,
        turn=1,
        round=len(messages),
        model="simulated/apprentice",
        system=system,
        messages=messages,
        tools=tools,
        plan_hash=session,
        plan_generation=1,
        max_output_tokens=4096,
        history_digest=session,
    )


def _is_test(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.startswith(("test_", "check")) or path.startswith(("tests/", "checks/"))
