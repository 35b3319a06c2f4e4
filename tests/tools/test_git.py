"""Facts of the git tools: they do git's work in the workspace's own repository, and nothing that it configures runs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from geode.tools.environment import LocalEnvironment
from geode.tools.git import GIT_TOOLS, git_tools
from geode.tools.spec import OutOfScope, SafetyLevel, ToolFailed
from geode.tools.workspace import Workspace
from tests.tools.conftest import Call

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def repository(root: Path) -> Path:
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "first")
    return root


async def test_a_change_is_seen_shown_committed_and_listed(repository: Path, call: Call) -> None:
    (repository / "src" / "app.py").write_text("def add(a, b):\n    return a + b\n")
    (repository / "new.txt").write_text("new\n")
    assert (await call("git_status")).text == "## main\n M src/app.py\n?? new.txt"
    assert "+    return a + b" in (await call("git_diff", path="/workspace/src")).text
    done = await call("git_commit", message="Add, not subtract", paths=["src/app.py"])
    assert (done.is_error, done.text.endswith("Add, not subtract")) == (False, True)
    assert (await call("git_status")).text == "## main\n?? new.txt"
    await call("git_commit", message="The rest")
    log = (await call("git_log", count=2)).text.splitlines()
    assert [line.split(": ", 1)[1] for line in log] == ["The rest", "Add, not subtract"]
    assert (await call("git_diff", against="HEAD~2")).text.count("diff --git") == 2


async def test_branches_are_made_switched_to_and_listed(repository: Path, call: Call) -> None:
    assert (await call("git_branch", action="create", name="try")).text.startswith("Switched to a new branch")
    (repository / "b.txt").write_text("b\n")
    await call("git_commit", message="On the branch")
    await call("git_branch", action="switch", name="main")
    assert not (repository / "b.txt").exists()
    assert (await call("git_branch", action="list")).text == "* main\n  try"
    with pytest.raises(ToolFailed, match="create needs a name"):
        await call("git_branch", action="create")
    failed = await call("git_branch", action="switch", name="nowhere")
    assert failed.is_error


async def test_nothing_to_commit_is_an_error_that_says_so(repository: Path, call: Call) -> None:
    done = await call("git_commit", message="Nothing")
    assert done.is_error
    assert "nothing to commit" in done.text


async def test_a_link_is_committed_as_itself(repository: Path, call: Call) -> None:
    (repository / "link").symlink_to("README.md")
    await call("git_commit", message="A link", paths=["link"])
    assert git(repository, "ls-files", "-s", "link").startswith("120000")


HOOKS = ["pre-commit", "commit-msg", "post-commit", "prepare-commit-msg", "post-checkout", "post-index-change"]


async def test_nothing_that_the_repository_configures_is_run(repository: Path, call: Call) -> None:
    """A14 and A16: a repository is data that the model can write, and each of these is a command in it."""
    touch = f"touch {repository}/ran"
    for name in HOOKS:
        hook = repository / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{touch}-{name}\n")
        hook.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "diff.x.textconv",
        "diff.x.command",
        "gpg.program",
        "sequence.editor",
        "pager.log",
        "alias.status",
        "merge.x.driver",
        "credential.helper",
    ):
        git(repository, "config", key, f"!{touch}-{key}" if key.startswith(("alias", "cred")) else f"{touch}-{key}")
    git(repository, "config", "commit.gpgSign", "true")
    git(repository, "config", "log.showSignature", "true")
    (repository / ".gitattributes").write_text("* diff=x merge=x\n")
    (repository / "README.md").write_text("# Changed\n")
    for name, arguments in (
        ("git_status", {}),
        ("git_diff", {}),
        ("git_commit", {"message": "m"}),
        ("git_log", {}),
        ("git_branch", {"action": "create", "name": "b"}),
        ("git_branch", {"action": "switch", "name": "main"}),
    ):
        done = await call(name, **arguments)
        assert not done.is_error, done.text
    assert [name for name in os.listdir(repository) if name.startswith("ran")] == []


async def test_the_same_repository_does_run_them_by_plain_git(repository: Path) -> None:
    """The test above can fail: these configurations do run programs."""
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    (repository / "README.md").write_text("# Changed\n")
    git(repository, "commit", "--quiet", "-am", "m")
    assert (repository / "ran").exists()


@pytest.mark.parametrize("part", ["clean", "smudge", "process"])
async def test_a_filter_cannot_be_switched_off_so_the_repository_is_refused(
    repository: Path, call: Call, part: str
) -> None:
    git(repository, "config", f"filter.x.{part}", "touch ran")
    with pytest.raises(ToolFailed, match=rf"filter\.x\.{part}"):
        await call("git_status")


@pytest.mark.parametrize("included", ["include.path", "includeIf.gitdir:**.path"])
async def test_a_filter_in_an_included_file_is_found_too(repository: Path, call: Call, included: str) -> None:
    (repository / "more").write_text('[filter "x"]\n\tclean = touch ran\n')
    git(repository, "config", included, str(repository / "more"))
    with pytest.raises(ToolFailed, match=r"filter\.x\.clean"):
        await call("git_status")


async def test_only_a_repository_of_the_workspaces_own_will_do(root: Path, call: Call, tmp_path: Path) -> None:
    """A repository around the workspace is somebody else's; a link or a file leads out of it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    git(tmp_path, "init", "--quiet")
    with pytest.raises(ToolFailed, match="no git repository of its own"):
        await call("git_status")
    git(outside, "init", "--quiet")
    (root / ".git").symlink_to(outside / ".git")
    with pytest.raises(ToolFailed, match="no git repository of its own"):
        await call("git_status")
    (root / ".git").unlink()
    (root / ".git").write_text(f"gitdir: {outside}/.git\n")
    with pytest.raises(ToolFailed, match="no git repository of its own"):
        await call("git_status")


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "src/../../secret.txt"])
async def test_a_path_outside_is_refused_before_git_sees_it(repository: Path, call: Call, path: str) -> None:
    with pytest.raises(OutOfScope):
        await call("git_diff", path=path)
    with pytest.raises(OutOfScope):
        await call("git_commit", message="m", paths=["README.md", path])


@pytest.mark.parametrize("name", ["--output=/tmp/x", "-p", "a b", "HEAD; touch ran", ""])
async def test_a_name_cannot_be_an_option(repository: Path, call: Call, name: str) -> None:
    with pytest.raises(AssertionError, match="against"):
        await call("git_diff", against=name)


def test_what_changes_the_repository_is_of_level_write(root: Path) -> None:
    levels = {name: spec.level for name, spec in git_tools(Workspace(root), LocalEnvironment()).items()}
    assert tuple(levels) == GIT_TOOLS
    assert {name for name, level in levels.items() if level is SafetyLevel.WRITE} == {"git_commit", "git_branch"}


async def test_the_machine_stays_hidden(repository: Path, call: Call) -> None:
    failed = await call("git_log", of="nowhere")
    assert failed.is_error
    assert str(repository) not in failed.text


async def test_letters_of_a_name_that_do_not_show_are_spelled_out(repository: Path, call: Call) -> None:
    """A06: and names of other scripts stay as they are."""
    for name in ("in\u200bstall\u202egnp.sh", "보고서.md"):
        (repository / name).write_text("x")
    text = (await call("git_status")).text
    assert "?? in\\u200bstall\\u202egnp.sh" in text
    assert "보고서.md" in text
    assert "\u200b" not in text
