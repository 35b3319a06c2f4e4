"""The shell tool's result says what happened, and shows nothing of the machine that the model should not know."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from geode.tools.arguments import check_arguments
from geode.tools.output import HEAD_BYTES, TAIL_BYTES
from geode.tools.shell import MAX_TIMEOUT_S, shell_tool
from geode.tools.spec import OutOfScope, ToolFailed
from geode.tools.workspace import Workspace
from tests.tools.conftest import Call
from tests.tools.test_process import pid_in


async def shell(call: Call, command: str, **arguments: JsonValue) -> str:
    return (await call("shell", command=command, **arguments)).text


async def test_the_exit_code_comes_first_then_the_output(call: Call) -> None:
    """ARCHITECTURE.md's table: hooks and prompts read the first line."""
    assert await shell(call, "echo out; echo err >&2") == "exit code: 0\nout\nerr"
    assert await shell(call, "true") == "exit code: 0\n(no output)"
    failed = await call("shell", command="echo no; exit 3")
    assert (failed.text, failed.is_error) == ("exit code: 3\nno", True)
    assert (await shell(call, "no_such_program_x")).startswith("exit code: 127\n")


async def test_a_signal_is_named(call: Call) -> None:
    """'-9' means nothing to a model; 137 does."""
    assert await shell(call, "kill -9 $$") == "exit code: 137 (ended by signal 9)\n(no output)"


async def test_the_command_sees_the_workspace_under_its_own_name(call: Call, root: Path) -> None:
    """An episode folder holds no absolute path of this machine."""
    text = await shell(
        call, "pwd; cat /workspace/README.md; ls /workspace/src; echo $HOME; python3 -c 'raise OSError' x"
    )
    assert text.startswith("exit code: 1\n/workspace\n# Demo\napp.py\n~\n")
    assert str(root) not in text
    assert "/tmp" not in text


async def test_a_path_that_a_command_wrote_down_is_hidden_when_it_is_read(call: Call, root: Path) -> None:
    """The way round by a file must not bring the machine's path into the records."""
    await shell(call, "pwd > where.txt")
    assert (root / "where.txt").read_text() == f"{root}\n"
    assert (await call("read_file", path="where.txt")).text == "/workspace\n"
    assert (await call("search", pattern="/ws")).text.startswith("where.txt:1: /workspace")


async def test_a_time_limit_says_so_and_keeps_the_output(call: Call) -> None:
    """R22: the result says how far it got."""
    output = await call("shell", command="echo started; sleep 60", timeout_s=0.3)
    assert output.is_error
    assert output.text == (
        "exit code: none (stopped at its time limit of 0.3 s with all that it had started; its output until then)\n"
        "started"
    )


async def test_colours_and_floods_are_kept_from_the_model(call: Call) -> None:
    """R18: control sequences are stripped, head and tail kept, and the cut counted exactly."""
    text = await shell(call, "printf '\\033[31mred\\033[0m\\033]0;title\\007\\r\\nend'")
    assert text == "exit code: 0\nred\nend"
    text = await shell(call, "echo first; yes $(printf '\\033[31mX\\033[0m') | head -c 3000000; echo; echo last")
    assert text.startswith("exit code: 0\nfirst\nX\nX\n")
    assert text.endswith("\nlast")
    assert "of 3000012 bytes left out" in text
    assert "\x1b" not in text
    assert len(text) < HEAD_BYTES + TAIL_BYTES + 200


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("printf '\\360'", "\ufffd"),
        ("head -c 200000 /dev/urandom", "[binary output, 200000 bytes, not shown; redirect it to a file to keep it]"),
        ("printf '%1023sé' ''", " " * 1_023 + "é"),
        ("printf '\\xf0\\x9f\\x8d\\xb8' | cat; printf '\\360\\237\\215\\270'", "🍸"),
    ],
)
async def test_output_that_is_no_text_never_throws(call: Call, command: str, shown: str) -> None:
    """R17: strict decoding would lose the whole trajectory."""
    assert (await shell(call, command)).endswith(shown)


async def test_no_secret_of_ours_is_in_reach_of_plain_means(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """R40, A19: environment, shell variables, git configuration; our own /proc entry is out of scope."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zx-canary")
    monkeypatch.setenv("GEODE_TOKEN", "zx-canary")
    assert "canary" not in await shell(call, "env; printenv; set; export -p; git config -l")
    for command in ("cat /proc/$PPID/environ", "cat /proc/self/environ", "strings /pro?/$PPID/environ"):
        with pytest.raises(OutOfScope):
            await shell(call, command)


async def test_nothing_planted_by_one_call_acts_in_the_next(call: Call, root: Path) -> None:
    """A15, R37: a fixed PATH without the workspace, and a fresh environment for each call."""
    (root / "ls").write_text("#!/bin/sh\necho planted\n")
    (root / "ls").chmod(0o755)
    await shell(call, "PATH=.:$PATH; export PATH; alias cat='echo planted'; echo 'echo planted' > ~/.profile; ls")
    text = await shell(call, "ls; cat README.md; echo $PATH")
    assert "planted" not in text
    assert "." not in text.splitlines()[-1].split(":")
    assert "planted" in await shell(call, "./ls")


async def test_a_configuration_named_by_a_variable_does_not_arrive(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """R37, A15: RIPGREP_CONFIG_PATH, BASH_ENV, PYTHONSTARTUP and the like run programs."""
    (tmp_path / "evil.sh").write_text("echo planted\n")
    for name in ("ENV", "BASH_ENV", "PYTHONSTARTUP", "RIPGREP_CONFIG_PATH", "GIT_SSH_COMMAND", "LD_PRELOAD"):
        monkeypatch.setenv(name, str(tmp_path / "evil.sh"))
    assert await shell(call, "sh -c true; echo ${ENV}${BASH_ENV}${LD_PRELOAD}x") == "exit code: 0\nx"


async def test_a_python_edit_within_one_second_is_seen(call: Call, root: Path) -> None:
    """Compiled files are keyed by second and size: with them, a fix of equal size would be tested in vain."""
    check = "python3 -c 'import sys; sys.path.insert(0, \"src\"); import app; print(app.add(2, 1))'"
    assert await shell(call, check) == "exit code: 0\n1"
    times = (root / "src/app.py").stat()
    await call("edit_file", path="src/app.py", old="a - b", new="a + b")
    os.utime(root / "src/app.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert await shell(call, check) == "exit code: 0\n3"
    assert not (root / "src/__pycache__").exists()


@pytest.mark.parametrize(
    "command", ["cat ../secret.txt", "cat /etc/passwd", "cd src && cat ../../secret.txt", "ls ~root"]
)
async def test_accidents_outside_are_refused_with_advice(call: Call, command: str) -> None:
    """R38 as far as a command's text shows it; the message says what to do instead."""
    with pytest.raises(OutOfScope, match=r"outside /workspace: use paths in the workspace, or \$TMPDIR"):
        await shell(call, command)


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("cat out", True),
        ("cat up/secret.txt", True),
        ("cd sub && cat deep/secret.txt", True),
        ("cat /workspace/out", True),
        ("echo x > out", True),
        ("cat in; cat sub/in; cat /workspace/in", False),
        ("echo out_of; ls https://out/out; echo -I/out", False),
    ],
)
async def test_a_link_that_leads_out_is_not_named(call: Call, root: Path, command: str, refused: bool) -> None:
    """A18, R38: as with the file tools; one that stays inside works."""
    (root.parent / "secret.txt").write_text("secret")
    (root / "sub").mkdir()
    for link, target in (("out", "../secret.txt"), ("up", ".."), ("sub/deep", "/"), ("in", "README.md")):
        (root / link).symlink_to(target)
    (root / "sub" / "in").symlink_to("../README.md")
    if refused:
        with pytest.raises(OutOfScope, match="outside /workspace"):
            await shell(call, command)
    else:
        assert "secret" not in await shell(call, command)


async def test_scratch_space_is_there_and_gone_afterwards(call: Call) -> None:
    """The advice of the refusal holds."""
    assert await shell(call, "echo x > $TMPDIR/a && cat $TMPDIR/a; mktemp") != ""
    assert await shell(call, "ls -A $TMPDIR") == "exit code: 0\n(no output)"


async def test_a_command_that_cannot_be_started_did_nothing(call: Call, root: Path) -> None:
    """`ToolFailed` is the end 'failed with no effect'; it must be true."""
    with pytest.raises(ToolFailed, match="could not be started: Argument list too long"):
        await shell(call, "true " + "한" * 60_000)
    os.rename(root, root.parent / "moved")
    with pytest.raises(ToolFailed, match="could not be started: No such file"):
        await shell(call, "true")


async def test_half_an_emoji_and_nul_in_a_command_do_not_throw(root: Path) -> None:
    """R14: a rewrite by a hook may bring them; the handler must not end as uncertain before anything ran."""
    output = await shell_tool(Workspace(root)).handler({"command": "echo 'a\0b\ud83c'"})
    assert output.text == "exit code: 0\na\ufffdb\ufffd"


@pytest.mark.parametrize("timeout_s", [0, -1, MAX_TIMEOUT_S + 1, "5", True])
def test_the_time_limit_has_limits_itself(root: Path, timeout_s: JsonValue) -> None:
    """The executor's own limit stands above the largest, so that it is the command's limit that is told."""
    spec = shell_tool(Workspace(root))
    assert check_arguments(spec, {"command": "true", "timeout_s": timeout_s}) is not None
    assert spec.timeout_s > MAX_TIMEOUT_S


async def test_cancelling_a_command_ends_it(root: Path) -> None:
    """Contract 5.11."""
    task = asyncio.ensure_future(shell_tool(Workspace(root)).handler({"command": "echo $$ > pid; sleep 60"}))
    pid = await pid_in(root / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_python3_is_there(call: Call) -> None:
    """Every suite relies on it; it is not the interpreter's environment that GEODE itself is installed in."""
    text = await shell(call, "python3 -c 'import sys; print(sys.prefix)'")
    assert text.startswith("exit code: 0\n")
    assert sys.prefix not in text or sys.prefix == sys.base_prefix


@pytest.mark.parametrize(
    ("command", "counts"),
    [
        ("sh run.sh", True),
        ("./run.sh --fast", True),
        ("sh -c '. ./run.sh'", True),
        ("cd sub && python3 job.py", True),
        ("sh /workspace/run.sh; ls", True),
        ("./tool", True),
        ("sh link", True),
        ("cat data.csv; touch data.csv", False),
        ("ls", False),
        ("sh ../outside.sh run.shx", False),
    ],
)
def test_a_yes_is_to_the_scripts_that_a_command_names(root: Path, command: str, counts: bool) -> None:
    """A23: by what they hold. What a program merely reads does not count, or every second yes would be asked again."""
    (root / "sub").mkdir()
    names = ("run.sh", "sub/job.py", "tool", "data.csv", "../outside.sh")
    for name in names:
        (root / name).write_text("1")
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("run.sh")
    basis = shell_tool(Workspace(root)).basis
    before = basis({"command": command})
    assert bool(before) is counts
    assert basis({"command": command}) == before
    for name in names:
        (root / name).write_text("2")
    assert (basis({"command": command}) != before) is counts
