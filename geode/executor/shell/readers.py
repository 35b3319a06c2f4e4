"""Programs whose arguments hold code or commands of their own: shells, `find`, `git`, `sed`, `awk`, interpreters."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final

from geode.executor.shell.hazards import Hazards, check_hazards
from geode.executor.shell.started import Started
from geode.executor.shell.syntax import UNKNOWN, Word, steers


def _shell(name: str, words: Sequence[Word], started: Started) -> None:
    """`sh -c TEXT` starts TEXT; a script is judged by its name; without either it reads its input."""
    position = 1
    while position < len(words):
        text = words[position].text
        if text is None:
            started.doubt(f"what {name} runs is made by an expansion")
            return
        if not text.startswith(("-", "+")) or text == "-":
            return  # the name of a script
        position += 1
        if text.startswith("--") or set(text[1:]) & set("lisrO"):
            started.doubt(f"{name} {text} reads other files or its input")
            return
        if "o" in text[1:]:
            position += 1
        if "c" in text[1:]:
            started.carrier = True
            code = words[position].text if position < len(words) else None
            if code is None:
                started.doubt(f"what {name} -c runs is made by an expansion")
            else:
                started.texts.append(code)
            return
    started.doubt(f"{name} runs what it reads from its input")


def _eval(name: str, words: Sequence[Word], started: Started) -> None:
    texts = [word.text for word in words[1:]]
    if name == "trap":
        texts = [text for text in texts[:1] if text not in ("-", "", "-l", "-p")]
    started.carrier = True
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        started.doubt(f"what {name} runs is made by an expansion")
    elif known:
        started.texts.append(" ".join(known))


def _find(name: str, words: Sequence[Word], started: Started) -> None:
    position = 1
    while position < len(words):
        word = words[position]
        position += 1
        if word.text is None and word.may_be_option:
            started.doubt(f"an expansion may give {name} options")
        elif word.text in ("-delete", "-fls", "-fprint", "-fprint0", "-fprintf"):
            started.doubt(f"{name} {word.text} changes files", hides=False)
        elif word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(position, len(words)) if words[i].text in (";", "+")), None)
            if end is None or end == position:
                started.doubt(f"{name} {word.text} has no end")
                return
            started.commands.append(tuple(_placeholder(part) for part in words[position:end]))
            position = end + 1


def _placeholder(word: Word) -> Word:
    """A file's name in its place: unknown, but no option, since it begins with the folder that is searched."""
    if word.text == "{}":
        return Word(text=None, start="./")
    return UNKNOWN if word.text is not None and "{}" in word.text else word


# What git does by itself. Anything else may be an alias, or a program named `git-...`.
_GIT_KNOWN = re.compile(
    r"""add|am|annotate|apply|archive|bisect|blame|branch|bundle|cat-file|check-attr|check-ignore|checkout|cherry|cherry-pick
    |clean|clone|commit|count-objects|describe|diff|diff-files|diff-index|diff-tree|fetch|for-each-ref|format-patch|fsck|gc
    |grep|hash-object|help|init|log|ls-files|ls-remote|ls-tree|merge|merge-base|mv|name-rev|notes|pull|push|range-diff
    |rebase|reflog|remote|reset|restore|rev-list|rev-parse|revert|rm|shortlog|show|show-branch|show-ref|sparse-checkout
    |stash|status|switch|symbolic-ref|tag|update-index|version|whatchanged|worktree""",
    re.VERBOSE,
)
_GIT_HAZARDS: Final = (
    *(
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--ext-diff",
        "--textconv",
        "--open-files-in-pager",
        "--interactive",
    ),
    *("--config", "--output"),
)
GIT_WITHOUT_EFFECT: Final = ("--no-pager", "--no-optional-locks", "--literal-pathspecs", "--version", "--help")
_GIT_SHORT: Final = {"clone": "uc", "rebase": "xi", "grep": "O", "add": "ip"}


def without_git_options(words: Sequence[Word], only: Collection[str] | None = None) -> tuple[Word, ...]:
    """Return a git command without what stands between `git` and its subcommand, so that `-C x clean` is `clean`."""
    position = 1
    while position < len(words) and (text := words[position].text or "").startswith("-"):
        if only is not None and text not in only:
            break
        position += 2 if text in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env") else 1
    return (*words[:1], *words[position:])


def _git(name: str, words: Sequence[Word], started: Started) -> None:
    plain = without_git_options(words)
    between = words[1 : 1 + len(words) - len(plain)]
    for word in between:
        text = word.text or ""
        if text.startswith("-") and text not in GIT_WITHOUT_EFFECT and text != "-C":
            started.doubt(f"git {text.partition('=')[0]} can make git run a program")
    if len(plain) < 2:
        return
    verb = plain[1].text
    if verb is None or not _GIT_KNOWN.fullmatch(verb):
        started.doubt(f"git {verb or '...'} may run a program, or be an alias")
        return
    first = plain[2].text if len(plain) > 2 else ""
    if verb == "bisect" and first == "run":
        started.doubt("git bisect run runs a program")
    hazards = Hazards(long=_GIT_HAZARDS, short=_GIT_SHORT.get(verb, ""), words="ext::.*")
    check_hazards(f"git {verb}", hazards, plain[2:], started)


_SED_ADDRESS = r"(?:\d+|\$|/(?:\\.|[^/\\\n])*/I?)"
_SED_PART = re.compile(
    rf"\s*(?:{_SED_ADDRESS}(?:,\s*(?:{_SED_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
    r"(?:[pdDPnNgGhHxq=l]\d*|s([/|#,:@!])(?:\\.|(?!\1)[^\\\n])*\1(?:\\.|(?!\1)[^\\\n])*\1[gpiI0-9]*|y/[^/\\\n]*/[^/\\\n]*/)?\s*"
)


def _sed(name: str, words: Sequence[Word], started: Started) -> None:
    scripts: list[str | None] = []
    operands: list[str | None] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        text = word.text
        if text is None and word.may_be_option:
            started.doubt("an expansion may give sed options")
        elif text in ("-e", "--expression"):
            scripts.append(rest.pop(0).text if rest else None)
        elif text is not None and re.fullmatch(r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--null-data|--", text):
            continue
        elif text is not None and text.startswith(("-i", "--in-place")):
            started.doubt("sed -i writes files", hides=False)
        elif text is not None and text.startswith("-") and text != "-":
            started.doubt(f"sed {text} is not read")
        else:
            operands.append(text)
    for script in scripts or operands[:1]:
        if script is None or not all(_SED_PART.fullmatch(part) for part in re.split(r"[;\n]", script)):
            started.doubt("the script of sed may run a program or write a file")


# A pipe that is not "or", what asks the system, what prints into a file, and calls by a name made at run time.
_AWK_ACTS = re.compile(r"system|getline|(?<!\|)\|(?!\|)|print[^;}\n]*>|@")


def _awk(name: str, words: Sequence[Word], started: Started) -> None:
    rest = list(words[1:])
    while rest:
        text = rest.pop(0).text
        if text in ("-F", "-v"):
            rest[:1] = []
        elif text is not None and re.match(r"-[Fv].|--$", text):
            continue
        elif text is None or text.startswith("-") or _AWK_ACTS.search(text):
            started.doubt(f"the program of {name} may run another one or write a file")
            return
        else:
            return


# Flags that change neither which code runs nor what it is made of.
_PLAIN_FLAGS = re.compile(r"-[uBOqsSEbvd]+")


def _interpreter(name: str, words: Sequence[Word], started: Started) -> None:
    """Code in the command line is a program that rules cannot see into; a script is judged by its name."""
    python = name.startswith("python")
    for word in words[1:]:
        text = word.text
        if text is None:
            started.doubt(f"what {name} runs is made by an expansion")
            return
        if text == "-":
            break
        if not text.startswith("-") or text in ("--version", "--help") or (python and text == "-m"):
            return
        if not (python and _PLAIN_FLAGS.fullmatch(text)):
            started.doubt(f"{name} {text[:40]} may run code that is not read here")
            return
    started.doubt(f"{name} runs what it reads from its input")


def _variables(name: str, words: Sequence[Word], started: Started) -> None:
    """`export`, `read` and the like set variables for all that comes after."""
    started.carrier = True
    for word in words[1:]:
        variable = re.split(r"[+=]", word.start)[0]
        if word.text is None and "=" not in word.start:
            started.doubt(f"an expansion names what {name} sets")
        elif not variable.startswith("-") and (name in ("unset", "read", "getopts") or "=" in word.start):
            if name == "export":
                started.sets(variable, "for all commands after")
            elif steers(variable):
                started.doubt(f"it sets {variable}, which can change what runs")


def _builtin_test(name: str, words: Sequence[Word], started: Started) -> None:
    if any(word.text == "-v" or (word.text is None and word.many) for word in words[1:]):
        started.doubt(f"{name} -v makes some shells run what an index holds")


_INTERPRETERS: Final = (
    *(
        "python",
        "python2",
        "python3",
        "perl",
        "ruby",
        "node",
        "nodejs",
        "deno",
        "bun",
        "php",
        "lua",
        "Rscript",
        "tclsh",
    ),
)
READERS: Final[dict[str, Callable[[str, Sequence[Word], Started], None]]] = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "ash", "mksh"), _shell),
    **dict.fromkeys(("eval", "trap"), _eval),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("test", "[", "printf"), _builtin_test),
    **dict.fromkeys(("export", "readonly", "local", "declare", "typeset", "unset", "read", "getopts"), _variables),
    **dict.fromkeys(_INTERPRETERS, _interpreter),
    "find": _find,
    "git": _git,
    "sed": _sed,
}
