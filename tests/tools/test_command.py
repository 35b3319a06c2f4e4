"""The reader of shell commands spares accidents: it refuses what plainly names a place outside, and little else."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.tools.command import path_outside
from geode.tools.workspace import Workspace


@pytest.mark.parametrize(
    "command",
    [
        "cat /etc/passwd",
        "cat '/etc/passwd'",
        'cat "/etc/passwd"',
        "cp a.py /tmp/a.py",
        "echo x >/tmp/y",
        "echo x > /no_such_folder_yet",
        "echo x >/usr/bin/ls",
        "cat < /etc/passwd",
        "x=/etc/passwd",
        "grep --file=/etc/passwd x",
        "cat //etc/passwd",
        "cat /usr/../etc/passwd",
        "cat /workspace/../etc/passwd",
        "cat /./etc/passwd",
        "cat /proc/$PPID/environ",
        "cat /pro*/self/environ",
        "cat /$(echo etc)/passwd",
        "cat /{etc,var}/x",
        "cat /e''tc/passwd /etc",
        "git -C /etc status",
        "python3 -c \"open('/etc/passwd')\"",
        "python3 - <<'EOF'\nprint(open('/etc/passwd').read())\nEOF",
        "curl file:///etc/passwd",
        "ls /",
        "rm -rf /",
        "rm -rf /*",
        "cd / && ls",
        "find / -name x",
        "ls; cd /",
        "cat ~root/.bashrc",
        "cat ..",
        "cat ../x",
        "cd .. && ls",
        "cd src && cat ../../x",
        "cd src && cd .. && cd ..",
        "cat src/../../x",
        "cat 'a b/../../../x'",
        "tar cf x.tar -C .. .",
        "cat /`echo etc`/passwd",
        "git fetch && cat /etc/passwd",
        "git status; cat /etc/passwd",
        "ls\ncat /etc/passwd",
        "echo $(cat /etc/passwd)",
        "echo `cat /etc/passwd`",
        "ls | tee /etc/x",
    ],
)
def test_what_plainly_names_a_place_outside_is_refused(command: str) -> None:
    """R36, A13 as far as scope goes: every segment counts, whatever joins or nests it."""
    assert path_outside(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "python3 -m unittest -q 2>&1 | tail -5",
        "python3 -m unittest discover -s tests >/dev/null 2>&1; echo $?",
        "cat /workspace/src/app.py",
        "cd /workspace/src && cat ../README.md",
        "cd src && cat ../README.md",
        "cd src/deep && ls ../.. && cat ../../x",
        "(cd src && make)",
        "echo 'a && b'",
        "sed -n '1,20p' src/app.py",
        "sed -i 's/a/b/' src/app.py",
        "sed 's|/|_|g' x",
        "sed '/^def/,/^$/d' src/app.py",
        "awk '/pattern/ {print $1}' x.csv",
        "awk -F/ '{print $2}' x",
        "grep -rn 'import os' src --include='*.py'",
        "grep -v '^#' x",
        "cut -d / -f 2 x",
        "tr '/' '_' < x",
        "echo $((6 / 2))",
        "expr 6 / 2",
        "python3 -c 'print(6 / 2)'",
        "echo 1 / 2",
        "git diff HEAD~1 -- src/app.py",
        "git log HEAD~2..HEAD",
        "git log main...feature",
        "/usr/bin/env python3 x.py",
        "#!/bin/sh\necho",
        "./run.sh && ./a/b.sh",
        "gcc -I/usr/include -o x x.c",
        "curl https://example.com/etc/passwd",
        "curl http://localhost:8000/api/v1/items",
        "echo '/api/v1/users' > routes.txt",
        "mkdir -p a/b && touch a/b/c",
        "ls ~/.cache; echo ~",
        "find . -name '*.py' -not -path './.git/*'",
        "printf '%s\\n' a/b/../c",
        "head -c 10 /dev/urandom | xxd",
        "cat file~ && rm file~",
        'for f in src/*.py; do echo "$f"; done',
        "test -f src/app.py || exit 1",
        "echo $HOME/x ${PWD}/src",
        "date +%Y/%m/%d",
        "node -e 'const a = b / c / d'",
        "cat <<'EOF' > notes.md\n# Title\n// a comment\nEOF",
    ],
)
def test_ordinary_commands_pass(command: str) -> None:
    """CASEBOOK part 4: a twin list of legitimate actions, so that refusing everything cannot win."""
    assert path_outside(command) is None


@given(st.text(max_size=80) | st.text(alphabet="/. ~'\"\\$(){}*;|&<>\ncdlsetc", max_size=80))
def test_any_text_is_judged(command: str) -> None:
    """It never raises, whatever a model writes."""
    assert path_outside(command) is None or isinstance(path_outside(command), str)


@pytest.mark.parametrize(
    "command",
    ["/a" * 50_000, "'" * 100_000, '"\\"' * 30_000, "\n" * 100_000, "cd " * 30_000, "../" * 30_000, "/*a " * 9],
)
def test_long_commands_are_judged_in_bounded_time(command: str) -> None:
    """A30: the reader of a command must not be what hangs the host. The test's own limit is the assertion."""
    path_outside(command)


@pytest.mark.parametrize("name", ["plain", "with blank", "it's", 'qu"ote', "do$llar", "back`tick", "한글"])
def test_the_revealed_root_survives_every_kind_of_quoting(tmp_path: Path, name: str) -> None:
    """A workspace may lie in a folder with any name; the shell itself is the judge."""
    root = tmp_path / name
    root.mkdir()
    (root / "a").write_text("found")
    command = Workspace(root).reveal("cat /workspace/a; cat '/workspace/a'; cat \"/workspace/a\"")
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "found" * 3
    assert shlex.split(command)
