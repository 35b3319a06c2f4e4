"""The hook that believes no claim which no call backs."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from geode.authority import SafetyLevel
from geode.hooks.library.memory import Memory, Remembering, keep_last
from geode.hooks.library.names import command_of, names_in_command, path_of, plain, shown_list
from geode.hooks.library.options import TEST_COMMANDS, TIME_LIMIT_S, HookOptions, Pattern
from geode.hooks.points import Decision, HookEvent, HookPoint, Pass, Repair, ToolEnded, TurnVerified

_SHOWN_FILES = 5
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_PASSING = re.compile(
    r"\b(tests?|checks?|test suite)\b[^,;:]{0,40}"
    r"\b(pass(es|ed)?|succeed(s|ed)?|(is|are|was|were) (now )?(green|passing))\b"
    r"|\bpassing (tests?|checks?)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(not|never|no|nobody|without|cannot|unless|until|if|should|would|could|will|may|might|fail\w*)\b|n't\b",
    re.IGNORECASE,
)
_NAME = r"[`'\"]?(?:[\w.@-]+/)*[\w@-]*\.?[\w@-]+\.\w{1,10}\b[`'\"]?"
_MADE = re.compile(
    r"\b(?:created|wrote|written|saved|generated|produced)\s+"
    r"(?:(?:a|an|the|new|file|files|script|called|named|to|as|it|result|results|report)\s+){0,5}"
    rf"({_NAME}(?:\s*(?:,|and|,\s*and)\s+{_NAME}){{0,9}})",
    re.IGNORECASE,
)


class RequireEvidenceOptions(HookOptions):
    """`commands` tells in a shell command that it runs a test; so many names are remembered that calls have made."""

    commands: Pattern = TEST_COMMANDS
    remembered: Annotated[int, Field(ge=1, le=1_000)] = 200


class _Memory(Memory):
    passed: bool = False
    made: list[str] = Field(default_factory=list)


class RequireEvidence(Remembering[_Memory]):
    """Sends back an answer that claims passing tests, or a file that was made, where no call shows it.

    It watches commands and changes, and reads the answer sentence by sentence. Passing tests are backed by a test
    command that went well after the last change; a file is backed by a write or by a command that names it. A sentence
    that denies or supposes claims nothing. It reads plain English: a claim in other words passes unseen. Calls of
    earlier prompts of the session count.
    Cost: a repair where the claim was empty, and where it was true and its wording misled.
    """

    name = "require_evidence"
    points = frozenset({HookPoint.POST_TOOL_USE, HookPoint.POST_VERIFY})
    time_limit_s = TIME_LIMIT_S
    options_type = RequireEvidenceOptions

    def __init__(self, options: RequireEvidenceOptions) -> None:
        super().__init__(_Memory())
        self._runs_a_test = re.compile(options.commands)
        self._limit = options.remembered

    async def decide(self, event: HookEvent) -> Decision:
        """Gather what calls showed; hold the answer against it."""
        match event:
            case ToolEnded():
                self._gather(event)
            case TurnVerified(answer=answer):
                problems = [*self._unbacked_tests(answer), *self._unbacked_files(answer)]
                if problems:
                    return Repair(instruction=" ".join(problems))
            case _:
                pass
        return Pass()

    def _gather(self, event: ToolEnded) -> None:
        command, path = command_of(event.arguments), path_of(event.arguments)
        if command and self._runs_a_test.search(command):
            self.memory.passed = not event.is_error
        if event.is_error:
            return
        if event.level is SafetyLevel.WRITE:
            self.memory.passed = False
            if path:
                keep_last(self.memory.made, path, self._limit)
        for name in names_in_command(command):
            keep_last(self.memory.made, name, self._limit)

    def _unbacked_tests(self, answer: str) -> Iterator[str]:
        if not self.memory.passed and any(_PASSING.search(sentence) for sentence in _claims(answer)):
            yield (
                "Your answer says that tests or checks pass, and since the last change no call shows that. Run the test"
                " or check command and read its output, or leave the claim out and say that it was not run."
            )

    def _unbacked_files(self, answer: str) -> Iterator[str]:
        made = {name.rsplit("/", 1)[-1] for name in self.memory.made}
        claimed = [
            plain(name.strip("`'\""))
            for sentence in _claims(answer)
            for found in _MADE.finditer(sentence)
            for name in re.findall(_NAME, found[1])
        ]
        if empty := list(dict.fromkeys(name for name in claimed if name.rsplit("/", 1)[-1] not in made)):
            yield (
                f"Your answer says that you made {shown_list(empty, _SHOWN_FILES)}, and no call did. Make what the"
                " request asks for, or correct the answer."
            )


def _claims(answer: str) -> Iterator[str]:
    return (sentence for sentence in _SENTENCE.split(answer) if sentence and not _DENIED.search(sentence))
