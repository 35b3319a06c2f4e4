"""Facts of the guards in `geode.hooks.library` that block a call: what they stop, and what they let through."""

import shlex

import pytest

from geode.hooks.library.refuse_dangerous import simple_commands
from geode.hooks.points import Block, HookEvent, Pass
from tests.hooks.library_events import asked, ended, hook, last, proposed

LISTING = ended("list_files", ".", "a.py\nsrc/\n[3 more entries]")


# require_read


@pytest.mark.parametrize(
    ("events", "is_blocked"),
    [
        ([proposed("edit_file", "a.py")], True),
        ([ended("read_file", "a.py"), proposed("edit_file", "a.py")], False),
        ([ended("read_file", "a.py", is_error=True), proposed("edit_file", "a.py")], True),
        ([ended("read_file", "b.py"), proposed("edit_file", "a.py")], True),
        ([ended("search", ".", "a.py:3: x = 1"), proposed("edit_file", "a.py")], False),
        ([ended("shell", "cat ./a.py | head"), proposed("edit_file", "a.py")], False),
        ([LISTING, proposed("edit_file", "a.py")], True),
        ([proposed("write_file", "new.py")], False),
        ([LISTING, proposed("write_file", "a.py")], True),
        ([LISTING, ended("read_file", "/workspace/a.py"), proposed("write_file", "a.py")], False),
        ([ended("write_file", "new.py"), proposed("edit_file", "new.py")], False),
        ([proposed("read_file", "a.py")], False),
    ],
)
async def test_a_file_is_changed_only_after_it_was_read(events: list[HookEvent], *, is_blocked: bool) -> None:
    """An edit from memory or guess hits the wrong place, and a whole write destroys what nobody looked at."""
    answer = await last(hook("require_read"), *events)
    assert isinstance(answer, Block) is is_blocked
    if isinstance(answer, Block):
        assert "a.py was not read in this session. Read it first" in answer.reason


async def test_what_was_read_longest_ago_is_forgotten_first() -> None:
    """Forgetting asks for one more reading; it never lets an unread file through."""
    guard = hook("require_read", remembered=2)
    await last(guard, *(ended("read_file", f"{n}.py") for n in range(3)))
    assert isinstance(await last(guard, proposed("edit_file", "0.py")), Block)
    assert await last(guard, proposed("edit_file", "2.py")) == Pass()


# refuse_new_files


@pytest.mark.parametrize(
    ("prompt", "path", "is_blocked"),
    [
        ("Mend a.py.", "b.py", True),
        ("Mend a.py.", "a.py", False),
        ("Write the totals to /workspace/out/totals.csv, please.", "out/totals.csv", False),
        ("Write `totals.csv`.", "out/totals.csv", False),
        ("Add a Makefile", "Makefile", False),
        ("Make it right.", "right", True),
    ],
)
async def test_only_files_that_somebody_named_are_written(prompt: str, path: str, *, is_blocked: bool) -> None:
    """A stray copy or a scratch file is the most usual mess that an agent leaves."""
    answer = await last(hook("refuse_new_files"), asked(prompt), proposed("write_file", path))
    assert isinstance(answer, Block) is is_blocked


async def test_what_the_tools_have_shown_is_no_new_file() -> None:
    guard = hook("refuse_new_files")
    assert isinstance(await last(guard, proposed("write_file", "a.py")), Block)
    assert await last(guard, LISTING, proposed("write_file", "a.py")) == Pass()
    assert await last(guard, ended("shell", "cat notes"), proposed("write_file", "notes")) == Pass()
    assert await last(guard, proposed("edit_file", "unseen.py")) == Pass()


# require_plan

PLAN = "I will:\n- read a.py\n2. change it"


async def test_the_first_change_waits_for_a_list_of_steps() -> None:
    """The plan may stand beside the change itself, or beside any call before it."""
    refused = await last(hook("require_plan"), asked(), proposed("edit_file", "a.py", said="I change it - now."))
    assert isinstance(refused, Block)
    assert "list the steps" in refused.reason
    assert await last(hook("require_plan"), asked(), proposed("edit_file", "a.py", said=PLAN)) == Pass()
    earlier = [asked(), proposed("read_file", "a.py", said=PLAN), proposed("edit_file", "a.py", at=2)]
    assert await last(hook("require_plan"), *earlier) == Pass()


async def test_all_changes_of_one_round_are_refused_and_those_of_the_next_are_not() -> None:
    """A model that cannot write text beside a call must not be stopped for good."""
    guard = hook("require_plan")
    answers = [await guard.decide(proposed("edit_file", name, at=at)) for name, at in (("a", 1), ("b", 1), ("c", 2))]
    assert [isinstance(answer, Block) for answer in answers] == [True, True, False]


async def test_each_prompt_needs_its_own_plan_and_reading_needs_none() -> None:
    guard = hook("require_plan")
    assert await last(guard, asked(), proposed("read_file", "a.py"), proposed("shell", "ls")) == Pass()
    assert await last(guard, proposed("edit_file", "a.py", said=PLAN)) == Pass()
    assert isinstance(await last(guard, asked(), proposed("edit_file", "a.py")), Block)


# refuse_dangerous

DANGEROUS = [
    "rm -rf src",
    "rm -r -f /workspace/src",
    "/bin/rm --recursive src",
    "rm -rf build src",
    "rm -rf build/..",
    "rm -rf",
    "cd src && rm -fr .",
    "true; rm -rf src",
    "ls\nrm -rf src",
    "sudo rm -rf src",
    "env A=1 rm -rf src",
    "A=1 timeout 5 rm -rf src",
    "find . -name x | xargs rm -rf",
    "find . -name '*.csv' -delete",
    "find . -exec rm {} +",
    "sh -c 'rm -rf src'",
    'bash -c "cd src && rm -rf ."',
    'eval "rm -rf src"',
    "echo $(rm -rf src)",
    'echo "`rm -rf src`"',
    "(rm -rf src)",
    "if true; then rm -rf src; fi",
    "rm -rf src 'unclosed",
    "git reset --hard",
    "git -C sub reset --hard HEAD~1",
    "git clean -fd",
    "git checkout -- .",
    "git checkout -f main",
    "git restore .",
    "git stash drop",
    "git branch -D old",
    "git push --force",
    "git push origin +main",
    "dd if=/dev/zero of=data.bin",
    "shred notes.txt",
    "mkfs.ext4 /dev/sda",
    "chmod -R 777 .",
    "sh <<EOF\nls\nEOF\nrm -rf src",
]
HARMLESS = [
    "",
    "ls -la",
    "rm notes.txt",
    "rm -f a.o b.o",
    "rm -rf build __pycache__ .pytest_cache",
    "rm -rf /workspace/build/",
    "echo rm -rf src",
    "echo 'rm -rf src'",
    "grep -rf patterns.txt src",
    "git status && git diff",
    "git reset HEAD a.py",
    "git checkout -b topic",
    "git restore a.py",
    "git branch -d old",
    "git commit -m 'do not git reset --hard'",
    "git push",
    "find . -name '*.py'",
    "chmod +x run.sh",
    "dd if=data.bin of=/dev/null",
    "cat > notes.md <<'EOF'\nnever run\nrm -rf src\nEOF",
    "sh test.sh",
    "sed -n '1,5p' rm.txt",
]


@pytest.mark.parametrize("command", DANGEROUS)
async def test_a_command_that_destroys_is_blocked(command: str) -> None:
    """It is found wherever it stands in the command: in a chain, behind a wrapper, inside another shell."""
    answer = await last(hook("refuse_dangerous"), proposed("shell", command))
    assert isinstance(answer, Block)
    assert "cannot be taken back" in answer.reason


@pytest.mark.parametrize("command", HARMLESS)
async def test_a_command_that_only_mentions_it_runs(command: str) -> None:
    """A guard that cries wolf costs rounds, and teaches the model to go around it."""
    assert await last(hook("refuse_dangerous"), proposed("shell", command)) == Pass()


async def test_what_may_go_is_an_option() -> None:
    strict, lax = hook("refuse_dangerous", expendable="^$"), hook("refuse_dangerous", expendable="^out$")
    assert isinstance(await last(strict, proposed("shell", "rm -rf build")), Block)
    assert await last(lax, proposed("shell", "rm -rf out")) == Pass()
    assert await last(strict, proposed("read_file", "rm -rf build")) == Pass()


def test_shells_in_shells_are_followed_only_so_far() -> None:
    """A strange command costs no time."""
    command = "ls -l"
    for _ in range(8):
        command = f"sh -c {shlex.quote(command)}"
    assert len(list(simple_commands(command))) == 5
