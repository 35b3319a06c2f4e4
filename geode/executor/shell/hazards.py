"""Ordinary programs with options that make them run another one, and programs that nobody can read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from geode.executor.shell.started import Started
from geode.executor.shell.syntax import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazards:
    """Options that make an ordinary program run another, or write a file. Long ones count by any clear beginning."""

    long: tuple[str, ...] = ()
    short: str = ""
    words: str = ""  # a pattern that an operand must not fit


HAZARDS: Final = {
    "rg": Hazards(long=("--pre", "--hostname-bin")),
    **dict.fromkeys(("fd", "fdfind"), Hazards(long=("--exec", "--exec-batch"), short="xX")),
    **dict.fromkeys(
        ("tar", "bsdtar"),
        Hazards(
            long=(
                *("--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command", "--info-script"),
                *("--new-volume-script", "--rmt-command"),
            ),
            short="IF",
            words=r"[A-Za-z]*[IF][A-Za-z]*",  # options of the old style, without a dash
        ),
    ),
    "sort": Hazards(long=("--compress-program", "--output"), short="o"),
    "split": Hazards(long=("--filter",)),
    "rsync": Hazards(long=("--rsh", "--rsync-path"), short="e"),
    **dict.fromkeys(("scp", "sftp"), Hazards(short="SoF")),
    "zip": Hazards(long=("--unzip-command", "--test"), short="T"),
    "curl": Hazards(long=("--config",), short="K"),
    "wget": Hazards(long=("--use-askpass", "--execute", "--config"), short="e"),
    **dict.fromkeys(("make", "gmake"), Hazards(long=("--eval",), words=r"SHELL=.*|\.SHELLFLAGS=.*")),
    **dict.fromkeys(("pytest", "py.test"), Hazards(long=("--override-ini", "--confcutdir"), short="pco")),
    "go": Hazards(long=("-exec", "-toolexec", "-vettool", "--exec", "--toolexec", "--vettool")),
    "cargo": Hazards(long=("--config",)),
    "npm": Hazards(long=("--script-shell", "--node-options")),
    "sqlite3": Hazards(long=("-init", "-cmd"), words=r"(?is)\s*\..*|.*(?:load_extension|writefile|edit)\s*\(.*"),
    "psql": Hazards(words=r"(?is).*(?:\\|\bprogram\b).*"),
    "xmllint": Hazards(long=("--shell",)),
    "date": Hazards(long=("--file",), short="f"),
}


def check_hazards(name: str, hazards: Hazards, words: Sequence[Word], started: Started) -> None:
    """Note each of `words`, the arguments of `name`, that can make it run another program."""
    for word in words:
        text = word.text
        if text is None:
            if word.may_be_option and (hazards.long or hazards.short):
                started.doubt(f"an expansion may give {name} options")
        elif text == "--":
            return
        elif text.startswith("-") and len(text) > 1:
            option = text.partition("=")[0]
            # getopt takes any beginning of a long option.
            if any(long == option or (len(option) > 3 and long.startswith(option)) for long in hazards.long) or (
                not text.startswith("--") and set(text[1:]) & set(hazards.short)
            ):
                started.doubt(f"{name} {option} can run another program or write a file")
        elif hazards.words and re.fullmatch(hazards.words, text) and (name != "tar" or word is words[0]):
            started.doubt(f"{name} {text[:40]} can run another program or write a file")


CANNOT_BE_READ: Final = {
    **dict.fromkeys(("sudo", "doas", "su", "runuser", "pkexec", "gosu"), "runs a command as another user"),
    **dict.fromkeys((".", "source"), "runs what a file holds, in this shell"),
    **dict.fromkeys(("alias", "unalias", "enable", "hash", "bind", "complete", "shopt"), "changes what names mean"),
    **dict.fromkeys(("crontab", "at", "batch", "systemd-run", "run-parts", "start-stop-daemon"), "runs commands later"),
    **dict.fromkeys(("ssh", "docker", "podman", "kubectl", "nsenter", "chroot", "unshare"), "runs commands elsewhere"),
    **dict.fromkeys(
        (
            *(
                "busybox",
                "toybox",
                "parallel",
                "entr",
                "watch",
                "script",
                "screen",
                "tmux",
                "expect",
                "strace",
                "ltrace",
                "gdb",
            ),
            *(
                "lldb",
                "perf",
                "valgrind",
                "flock",
                "npx",
                "bunx",
                "uvx",
                "pipx",
                "rlwrap",
                "proot",
                "fakeroot",
                "hyperfine",
            ),
            *(
                "socat",
                "nc",
                "ncat",
                "netcat",
                "coproc",
                "select",
                "function",
                "[[",
                "let",
                "fc",
                "mapfile",
                "readarray",
            ),
        ),
        "runs what it is given in ways that are not read",
    ),
    **dict.fromkeys(
        (
            "ed",
            "ex",
            "vi",
            "vim",
            "nvim",
            "view",
            "emacs",
            "nano",
            "less",
            "more",
            "most",
            "man",
            "info",
            "pager",
            "dc",
            "m4",
        ),
        "can run commands from inside",
    ),
}
