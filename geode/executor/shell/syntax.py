"""Reads a shell command by its grammar: its words, what it assigns and where it writes. It knows no program.

The grammar is that of `mvdan/sh` (the `shfmt` command, a dependency) in its POSIX dialect. What POSIX leaves open and
some `/bin/sh` reads otherwise (braces, `$'...'`, `[[`) is a doubt, and so is every node that is not named here: nothing
that a command might run is ever left out in silence.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final

TEXT_CHARS_MAX = 10_000
COMMANDS_MAX = 32
_PARSER_TIMEOUT_S = 10.0
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# An escaped letter, or what some shell makes other words of: a pattern, braces, somebody's home.
_SPECIAL = re.compile(r"\\.|[*?\[~]|\{(?!\})", re.DOTALL)
# The parser does not see that `$`, a backslash at a line's end, and `(` on the next line are a substitution.
_SPLIT_TOKEN = re.compile(r"[^ \t\n]\\\n")
# The parser takes a `#` behind a quote inside a substitution for a comment. It is one only where a word could begin.
_BEFORE_COMMENT = re.compile(rb"(?:\A|[\n;&|(]|(?<!\\)[ \t])\Z")
_ESCAPED_IN_QUOTES = re.compile(r"\\(\n|[$`\"\\])")
_STEERS = re.compile(
    r"PATH|IFS|ENV|BASH.*|SHELL.*|PS\d|PROMPT_COMMAND|CDPATH|HOME|TMPDIR|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|XDG_.*|.*(?:PAGER|"
    r"EDITOR|BROWSER|ASKPASS|_SSH|_RSH|PROXY|CONFIG.*|OPTS|OPTIONS|FLAGS|COMMAND|PRELOAD|STARTUP|OPEN|SHELL|PATH)|"
    r"GIT_.*|SSH_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|NPM_.*|JAVA_.*|LESS.*|TAR.*|RIPGREP_.*|PIP_.*|UV_.*|CARGO_.*|GO.*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word as the program gets it. `text` is None if only the shell will know.

    `start` is what stands in front of the first part that is not known. An unknown word with `many` set may become
    several words, or none.
    """

    text: str | None
    start: str
    many: bool = False

    @property
    def may_be_option(self) -> bool:
        """Whether the program may take it for an option that nobody can read here."""
        return self.text is None and (self.many or self.start == "" or self.start.startswith("-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Why somebody should look. `hides` means that a program may run which nobody could name."""

    text: str
    hides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """One simple command: its words, and the variables that are set for it alone."""

    words: tuple[Word, ...]
    sets: tuple[str, ...] = ()


@dataclass(slots=True)
class Syntax:
    """What a command's text holds: simple commands in order, the files that it reads and writes by redirection."""

    commands: list[Simple] = field(default_factory=list)
    reads: list[Word] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)

    def doubt(self, text: str, *, hides: bool = True) -> None:
        """Note a doubt."""
        self.doubts.append(Doubt(text=text, hides=hides))


def literal(text: str) -> Word:
    """Return a word that is just `text`."""
    return Word(text=text, start=text)


UNKNOWN: Final = Word(text=None, start="", many=True)


def steers(variable: str) -> bool:
    """Whether a variable of this name can decide which program runs, or what a program runs."""
    return _STEERS.fullmatch(variable) is not None


def parse(text: str) -> Syntax:
    """Read `text`. It never raises: what cannot be read is a doubt that hides."""
    syntax = Syntax()
    if len(text) > TEXT_CHARS_MAX:
        syntax.doubt(f"it has {len(text)} characters; at most {TEXT_CHARS_MAX} are read")
        return syntax
    if found := _CONTROL.search(text):
        syntax.doubt(f"it holds the control character U+{ord(found[0]):04X}")
        return syntax
    if _SPLIT_TOKEN.search(text):
        syntax.doubt("a line ends in the middle of a word, which joins what stands on both sides")
    try:
        tree = _tree(text)
        _Reader(text, syntax).all(tree)
    except _Unreadable as problem:
        syntax.doubt(f"it cannot be read as shell syntax ({problem})")
    except RecursionError:
        syntax.doubt("it is nested too deeply")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # The tree is another program's; a form of it that is not known is no reason to go ahead.
        syntax.doubt(f"its syntax tree has a form that is not known ({type(error).__name__}: {error})")
    if len(syntax.commands) > COMMANDS_MAX:
        syntax.doubt(f"it runs {len(syntax.commands)} commands; at most {COMMANDS_MAX} are judged one by one")
    return syntax


class _Unreadable(Exception):  # noqa: N818  (a property of the text)
    pass


@cache
def _parser() -> str:
    """Return the path of the parser: the file that its own package installed, whatever PATH says."""
    try:
        files = distribution("shfmt-py").files or ()
    except PackageNotFoundError:
        files = ()
    for file in files:
        if file.name in ("shfmt", "shfmt.exe"):
            return str(file.locate())
    raise _Unreadable("the package shfmt-py is not installed")


def _tree(text: str) -> Mapping[str, Any]:
    try:
        ran = subprocess.run(  # noqa: S603  (a fixed program; the text goes to its standard input)
            (_parser(), "-ln", "posix", "--to-json"),
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            timeout=_PARSER_TIMEOUT_S,
            env={},
            cwd="/",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unreadable(f"the parser failed: {error}") from error
    if ran.returncode != 0:
        raise _Unreadable(ran.stderr.decode("utf-8", "replace").strip()[:200])
    tree: Mapping[str, Any] = json.loads(ran.stdout)
    return tree


class _Reader:
    """Walks one syntax tree."""

    def __init__(self, text: str, syntax: Syntax) -> None:
        self._bytes, self._syntax = text.encode("utf-8", "replace"), syntax

    def all(self, tree: Mapping[str, Any]) -> None:
        """Read the whole tree."""
        self._check_comments(tree)
        self.statements(tree.get("Stmts"))

    def _check_comments(self, node: object) -> None:
        if isinstance(node, list):
            for item in node:
                self._check_comments(item)
        elif isinstance(node, dict):
            if "Hash" in node and not _BEFORE_COMMENT.search(self._bytes[: node["Hash"]["Offset"]][-2:]):
                self._syntax.doubt("it has a # that some shells read as a comment and others do not")
            for item in node.values():
                if isinstance(item, list | dict):
                    self._check_comments(item)

    def statements(self, nodes: Sequence[Mapping[str, Any]] | None) -> None:
        for node in nodes or ():
            self._statement(node)

    def _statement(self, node: Mapping[str, Any]) -> None:
        for redirection in node.get("Redirs") or ():
            self._redirection(redirection)
        if node.get("Coprocess"):
            self._syntax.doubt("it starts a coprocess")
        if (command := node.get("Cmd")) is not None:
            self._command(command)

    def _command(self, node: Mapping[str, Any]) -> None:
        match node["Type"]:
            case "CallExpr":
                self._call(node)
            case "BinaryCmd":
                self._statement(node["X"])
                self._statement(node["Y"])
            case "Block" | "Subshell":
                self.statements(node["Stmts"])
            case "IfClause":
                self._if(node)
            case "WhileClause":
                self.statements(node["Cond"])
                self.statements(node["Do"])
            case "ForClause" if node["Loop"]["Type"] == "WordIter":
                self._assigned(node["Loop"]["Name"]["Value"])
                for item in node["Loop"].get("Items") or ():
                    self._word(item)
                self.statements(node["Do"])
            case "CaseClause":
                self._word(node["Word"])
                for item in node.get("Items") or ():
                    for pattern in item["Patterns"]:
                        self._word(pattern)
                    self.statements(item.get("Stmts"))
            case "FuncDecl":
                self._statement(node["Body"])
            case kind:
                self._syntax.doubt(f"it uses {kind}, which is not read")

    def _if(self, node: Mapping[str, Any] | None) -> None:
        while node is not None:
            self.statements(node.get("Cond"))
            self.statements(node.get("Then"))
            node = node.get("Else")

    def _call(self, node: Mapping[str, Any]) -> None:
        names = []
        for assignment in node.get("Assigns") or ():
            names.append(assignment["Name"]["Value"])
            if assignment.keys() & {"Index", "Array", "Append"}:
                self._syntax.doubt(f"it assigns {names[-1]} in a way that is not read")
            if assignment.get("Value") is not None:
                self._word(assignment["Value"])
        words = tuple(self._word(word) for word in node.get("Args") or ())
        if words:
            self._syntax.commands.append(Simple(words=words, sets=tuple(names)))
        else:
            for name in names:
                self._assigned(name)

    def _assigned(self, name: str) -> None:
        if steers(name):
            self._syntax.doubt(f"it sets {name}, which can change what runs")

    def _redirection(self, node: Mapping[str, Any]) -> None:
        word = self._word(node["Word"])
        if (body := node.get("Hdoc")) is not None:
            self._word(body)
        match node["Op"]:
            case "<<" | "<<-":
                pass
            case "<":
                self._syntax.reads.append(word)
            case "<&":
                if word.text is None or not re.fullmatch(r"\d+|-", word.text):
                    self._syntax.doubt("it reads from a descriptor that is not named")
            case ">&" if word.text is not None and re.fullmatch(r"\d+|-", word.text):
                pass
            case ">&" if word.start.startswith("-"):
                self._syntax.doubt("it closes a descriptor in a way that shells read differently")
            case ">" | ">>" | ">|" | "<>" | ">&":
                self._syntax.writes.append(word)
            case operator:
                self._syntax.doubt(f"it uses the redirection {operator}, which is not read")

    def _word(self, node: Mapping[str, Any]) -> Word:
        made = _Made()
        parts: Sequence[Mapping[str, Any]] = node.get("Parts") or ()
        if len(parts) == 1 and parts[0].get("Value") == "[":
            return literal("[")  # the command, not the beginning of a pattern
        for index, part in enumerate(parts):
            following = parts[index + 1]["Type"] if index + 1 < len(parts) else ""
            self._part(part, made, quoted=False, following=following)
        return made.word()

    def _part(self, part: Mapping[str, Any], made: "_Made", *, quoted: bool, following: str = "") -> None:
        if part.get("Dollar") is True:
            self._syntax.doubt("it uses $'...' or $\"...\", which shells read in different ways")
        match part["Type"]:
            case "Lit":
                self._literal(part["Value"], made, quoted=quoted)
                if not quoted and following.endswith("Quoted") and re.search(r"(?<!\\)(?:\\\\)*\$\Z", part["Value"]):
                    self._syntax.doubt("it uses $'...' or $\"...\", which shells read in different ways")
            case "SglQuoted":
                made.known(part.get("Value", ""))
            case "DblQuoted":
                made.known("")
                for inner in part.get("Parts") or ():
                    self._part(inner, made, quoted=True)
            case "ParamExp":
                self._parameter(part)
                made.unknown(many=not quoted or part.get("Param", {}).get("Value") in ("@", "*"))
            case "CmdSubst":
                self._substitution(part)
                made.unknown(many=not quoted)
            case "ArithmExp":
                self._inside(part["X"])
                made.unknown(many=not quoted)
            case kind:
                self._syntax.doubt(f"it uses {kind}, which is not read")
                made.unknown(many=True)

    def _literal(self, value: str, made: "_Made", *, quoted: bool) -> None:
        if quoted:
            made.known(_ESCAPED_IN_QUOTES.sub(lambda found: found[1].replace("\n", ""), value))
            return
        position = 0
        for found in _SPECIAL.finditer(value):
            if found.start() > position:
                made.known(value[position : found.start()])
            position = found.end()
            match found[0]:
                case "\\\n":
                    pass
                case "~" if made.begun:
                    made.known("~")
                case "~":
                    made.known("~")
                    made.unknown(many=False)
                case "*" | "?" | "[" | "{":
                    made.unknown(many=True)
                case escaped:
                    made.known(escaped[1:])
        made.known(value[position:])

    def _parameter(self, part: Mapping[str, Any]) -> None:
        extra = part.keys() & {"Excl", "Index", "Slice", "Repl", "Names", "Width", "Flags"}
        if extra:
            self._syntax.doubt("it uses a form of ${...} that is not read")
        expansion = part.get("Exp")
        if expansion is not None:
            if expansion["Op"] in ("=", ":="):
                self._assigned(part["Param"]["Value"])
            if expansion.get("Word") is not None:
                self._word(expansion["Word"])

    def _substitution(self, part: Mapping[str, Any]) -> None:
        if part.get("Backquotes") and b"\\" in self._bytes[part["Pos"]["Offset"] : part["End"]["Offset"]]:
            self._syntax.doubt("it has backslashes inside backquotes")
        if part.keys() & {"TempFile", "ReplyVar"}:
            self._syntax.doubt("it uses a form of $(...) that is not read")
        self.statements(part.get("Stmts"))

    def _inside(self, node: object) -> None:
        """Read the substitutions inside an arithmetic expression, whatever its operators."""
        if isinstance(node, list):
            for item in node:
                self._inside(item)
        elif isinstance(node, dict):
            if node.get("Type") in ("ParamExp", "CmdSubst", "DblQuoted", "SglQuoted", "ArithmExp"):
                self._part(node, _Made(), quoted=True)
            else:
                for item in node.values():
                    self._inside(item)


@dataclass(slots=True)
class _Made:
    """A word while it is put together."""

    text: str = ""
    start: str | None = None
    many: bool = False
    begun: bool = False

    def known(self, text: str) -> None:
        self.begun = True
        self.text += text

    def unknown(self, *, many: bool) -> None:
        self.begun = True
        self.start = self.text if self.start is None else self.start
        self.many = self.many or many

    def word(self) -> Word:
        return literal(self.text) if self.start is None else Word(text=None, start=self.start, many=self.many)
