"""Facts of `experiments.suites.sandboxed`: which tasks are put into the sandbox, and that they are other tasks then."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from experiments.suite import OutcomeKind, Suite
from experiments.suites.loader import SuiteError, load_suite
from experiments.suites.sandboxed import in_sandbox
from experiments.suites.verify_command import CommandVerifier
from geode.dev.skeleton import SkeletonKind, write_skeleton
from geode.tools.environment import LOCAL
from geode.tools.sandbox import SandboxUse, bubblewrap, why_no_sandbox
from tests.doubles.sandboxes import needs_bwrap, plain

OFF, AUTO, REQUIRE = SandboxUse
APPRENTICE, MODEL = "simulated/apprentice", "anthropic/claude-opus-5-5"


@pytest.fixture(autouse=True)
def _tried_anew() -> Iterator[None]:
    why_no_sandbox.cache_clear()
    yield
    why_no_sandbox.cache_clear()


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load_suite(str(write_skeleton(SkeletonKind.SUITE, "mine", tmp_path)))


def hashes(suite: Suite) -> Mapping[str, str]:
    return {task.task_id: task.task_hash for task in suite.tasks}


@pytest.mark.parametrize(("use", "targets"), [(AUTO, [APPRENTICE]), (OFF, [APPRENTICE]), (OFF, [APPRENTICE, MODEL])])
def test_what_is_simulated_stays_outside_and_is_what_it_was(suite: Suite, use: SandboxUse, targets: list[str]) -> None:
    """Whatever the machine has: the truth about the simulator is bound to these hashes."""
    assert in_sandbox(suite, use, targets) is suite


@needs_bwrap
@pytest.mark.parametrize(("use", "targets"), [(AUTO, [APPRENTICE, MODEL]), (REQUIRE, [APPRENTICE])])
def test_a_task_in_the_sandbox_is_another_task(suite: Suite, use: SandboxUse, targets: list[str]) -> None:
    """One language model among the targets is enough: all variants of a block run in the same place."""
    put = in_sandbox(suite, use, targets)
    assert [task.environment for task in put.tasks] == [bubblewrap(network=False)]
    assert hashes(put).keys() == hashes(suite).keys()
    assert not set(hashes(put).values()) & set(hashes(suite).values())
    assert hashes(in_sandbox(suite, REQUIRE, targets)) == hashes(put)


@needs_bwrap
def test_a_verify_command_runs_what_the_agent_left_in_the_sandbox_too(tmp_path: Path) -> None:
    """It has its task and this Python there, and no home to give away."""
    folder = write_skeleton(SkeletonKind.SUITE, "mine", tmp_path)
    (folder / "first_task" / "verify.py").unlink()
    with (folder / "first_task" / "task.yaml").open("a") as file:
        file.write('verify_command: test -e "$TASK/task.yaml" && python -c "import pydantic" && test ! -e /home\n')
    (task,) = in_sandbox(load_suite(str(folder)), REQUIRE, [APPRENTICE]).tasks
    assert isinstance(task.verify, CommandVerifier)
    assert task.verify(task.fixtures).kind is OutcomeKind.PASS


def test_a_task_with_an_environment_of_its_own_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And if all have one, nobody asks for bubblewrap."""
    folder = write_skeleton(SkeletonKind.SUITE, "mine", tmp_path)
    declared = plain()
    with (folder / "suite.yaml").open("a") as file:
        file.write(f"environment: {declared.model_dump_json(exclude={'stop'})}\n")
    suite = load_suite(str(folder))
    assert suite.tasks[0].environment is not LOCAL
    monkeypatch.setenv("PATH", str(tmp_path))
    assert in_sandbox(suite, REQUIRE, [MODEL]) is suite


def test_without_bubblewrap_a_language_model_is_refused_and_the_way_out_is_named(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails closed: what it executes is whatever a page, a file or a tool talks it into."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SuiteError) as refused:
        in_sandbox(suite, AUTO, [MODEL, APPRENTICE])
    assert str(refused.value) == (
        "suite.sandbox: there is no program 'bwrap' on the PATH; install bubblewrap. With suite.sandbox=off, what"
        f" {MODEL}, {APPRENTICE} executes can reach all that you can"
    )
