"""The hook that stops a command which destroys what cannot be brought back."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.hooks.library.names import command_of, plain
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions, Pattern
from geode.hooks.points import Block, Decision, HookEvent, HookPoint, Pass, ToolProposed

_DEPTH_MAX = 4
_SHOWN_CHARS = 120
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2[ \t]*$", re.DOTALL | re.MULTILINE)
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_OPERATOR = re.compile(r"[();<>|&\n]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NUMBER = re.compile(r"[\d.]+[smhd]?")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_WRAPPERS = frozenset(
    {"sudo", "env", "nohup", "time", "command", "exec", "nice", "timeout", "xargs", "then", "do", "else"}
)
_DESTROYERS = frozenset({"shred", "mkfs", "wipefs", "truncate"})


class RefuseDangerousOptions(HookOptions):
    """`expendable` is searched in a path that `rm` is to remove with all below it: what matches may go."""

    expendable: Pattern = r"(^|/)(build|dist|target|node_modules|__pycache__|\.\w+_cache|tmp|[^/]*\.tmp)/?$"


class RefuseDangerous:
    """Blocks commands that delete folders, throw away uncommitted or published work, or overwrite a device.

    It watches shell commands before they run, and reads them word by word: the parts of a chain, what a wrapper such as
    `sudo` or `sh -c` runs, and what `$(...)` and backquotes run. It remembers nothing. It spares accidents and is no
    sandbox: a command can be built in ways that no reader of its text sees.
    Cost: a refused call where the command was meant.
    """

    name = "refuse_dangerous"
    points = frozenset({HookPoint.PRE_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = RefuseDangerousOptions

    def __init__(self, options: RefuseDangerousOptions) -> None:
        self._expendable = re.compile(options.expendable)

    async def decide(self, event: HookEvent) -> Decision:
        """Block a command of which one part is dangerous."""
        match event:
            case ToolProposed(level=SafetyLevel.EXECUTE):
                for words in simple_commands(command_of(event.arguments)):
                    if harm := self._harm(words):
                        shown = " ".join(words)[:_SHOWN_CHARS]
                        return Block(
                            reason=f"`{shown}` {harm}, and that cannot be taken back. Change or remove single files by"
                            " name, and only those that the request is about."
                        )
            case _:
                pass
        return Pass()

    def _harm(self, words: Sequence[str]) -> str:
        program, arguments = words[0].rsplit("/", 1)[-1], words[1:]
        match program:
            case "rm" if _has_flag(arguments, "rR", "--recursive"):
                paths = [plain(word) for word in arguments if not word.startswith("-")]
                expendable = paths and all(self._expendable.search(path) and ".." not in path for path in paths)
                return "" if expendable else "deletes folders with everything in them"
            case "find" if "-delete" in arguments or _runs_rm(arguments):
                return "deletes whatever it finds"
            case "git":
                return _harm_of_git(arguments)
            case "dd" if any(word.startswith("of=") and not word.startswith("of=/dev/null") for word in arguments):
                return "overwrites its target block by block"
            case "chmod" | "chown" if _has_flag(arguments, "R", "--recursive"):
                return "changes the rights of a whole folder"
            case _ if program.split(".")[0] in _DESTROYERS:
                return "destroys the content of its target"
            case _:
                return ""

    def snapshot(self) -> JsonValue:
        """See `DecisionHook`."""
        return None

    def restore(self, memory: JsonValue) -> None:
        """See `DecisionHook`."""


def simple_commands(command: str, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the words of each program that `command` runs, as far as its text tells; wrappers are taken off."""
    if depth > _DEPTH_MAX:
        return
    command = _HEREDOC.sub(r" \3", command)
    for inner in _SUBSTITUTION.finditer(command):
        yield from simple_commands(inner[1] or inner[2] or "", depth + 1)
    part: list[str] = []
    for word in (*_words(command), ";"):
        if _OPERATOR.fullmatch(word):
            yield from _unwrapped(part, depth)
            part = []
        else:
            part.append(word)


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        # An open quote: the shell will refuse it too, or it stands in a text that is no command. Words are all we have.
        return _OPERATOR.sub(lambda found: f" {found[0]} ", command).split(" ")


def _unwrapped(words: Sequence[str], depth: int) -> Iterator[tuple[str, ...]]:
    rest = [word for word in words if word]
    wrapped = False
    while rest and (
        _ASSIGNMENT.match(rest[0])
        or rest[0].rsplit("/", 1)[-1] in _WRAPPERS
        or (wrapped and (rest[0].startswith("-") or _NUMBER.fullmatch(rest[0])))
    ):
        wrapped = wrapped or rest[0].rsplit("/", 1)[-1] in _WRAPPERS
        rest = rest[1:]
    if not rest:
        return
    program = rest[0].rsplit("/", 1)[-1]
    if program in _SHELLS or program == "eval":
        for word in rest[1:]:
            if " " in word:  # the text of a command, not the name of a script
                yield from simple_commands(word, depth + 1)
        if program == "eval":
            yield from simple_commands(" ".join(rest[1:]), depth + 1)
    yield tuple(rest)


def _harm_of_git(arguments: Sequence[str]) -> str:
    options_gone = [word for at, word in enumerate(arguments) if not word.startswith("-") and not _takes(arguments, at)]
    verb = options_gone[0] if options_gone else ""
    rest = arguments[list(arguments).index(verb) + 1 :] if verb else []
    match verb:
        case "reset" if "--hard" in rest:
            return "throws away all uncommitted work"
        case "clean" if _has_flag(rest, "f", "--force"):
            return "deletes every file that is not committed"
        case "checkout" if "." in rest or _has_flag(rest, "f", "--force"):
            return "throws away all uncommitted work"
        case "restore" if "." in rest and "--staged" not in rest:
            return "throws away all uncommitted work"
        case "stash" if rest and rest[0] in ("drop", "clear"):
            return "throws stashed work away"
        case "branch" if _has_flag(rest, "D", "--delete") and ("-D" in rest or "--force" in rest):
            return "deletes a branch that may not be merged"
        case "push" if _has_flag(rest, "f", "--force") or any(word.startswith("+") for word in rest):
            return "overwrites published history"
        case _:
            return ""


def _takes(arguments: Sequence[str], at: int) -> bool:
    return at > 0 and arguments[at - 1] in ("-C", "-c")


def _has_flag(arguments: Sequence[str], letters: str, long: str) -> bool:
    return any(
        word == long
        or (word.startswith("-") and not word.startswith("--") and any(letter in word for letter in letters))
        for word in arguments
    )


def _runs_rm(arguments: Sequence[str]) -> bool:
    return any(
        word in ("-exec", "-execdir", "-ok") and following.rsplit("/", 1)[-1] == "rm"
        for word, following in pairwise(arguments)
    )
