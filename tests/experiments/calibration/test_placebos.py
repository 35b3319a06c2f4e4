"""A placebo does nothing, by the worker's own table and in its own hands."""

from pathlib import Path

import pytest

from experiments.calibration.placebos import PLACEBOS, NoPlacebo, refuse_what_counts
from experiments.suites.loader import copy_fixtures, load_suite
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.executor.policy import Mode
from geode.llm.simulated import shipped_table
from geode.scaffold import PromptSource, RepairBudget, Scaffold, ToolChoice, ToolPlan
from geode.serve.services import SharedServices

BASELINE = Scaffold(
    prompt=(PromptSource(text="You are a coding agent. Do what the user asks."),),
    tools=ToolPlan(tools=tuple(ToolChoice(name=name) for name in ("list_files", "read_file", "edit_file", "shell"))),
)


def with_words(text: str) -> Scaffold:
    return BASELINE.model_copy(update={"prompt": (*BASELINE.prompt, PromptSource(text=text))})


@pytest.mark.parametrize("name", PLACEBOS)
def test_no_word_of_a_placebo_stands_in_the_table(name: str) -> None:
    """Its effect is then exactly zero, and whoever keeps it was fooled."""
    refuse_what_counts(name, with_words(PLACEBOS[name]), BASELINE, shipped_table())


def test_placebos_are_scaffolds_of_their_own() -> None:
    """Equal scaffolds would share their episodes, and nothing could differ by chance."""
    made = {with_words(text).scaffold_id for text in PLACEBOS.values()}
    assert len(made | {BASELINE.scaffold_id}) == 9


@pytest.mark.parametrize(
    ("scaffold", "why"),
    [
        (with_words("Run the tests before you answer."), "how often skip_check happens"),
        (BASELINE.model_copy(update={"repair": RepairBudget(per_prompt=0)}), "more than its prompt"),
        (BASELINE, "the baseline itself"),
    ],
)
def test_what_counts_is_refused(scaffold: Scaffold, why: str) -> None:
    """A calibration against something that helps would praise or blame the gate for the wrong reason."""
    with pytest.raises(NoPlacebo, match=why):
        refuse_what_counts("it", scaffold, BASELINE, shipped_table())


def test_taking_a_word_away_counts_too() -> None:
    """The baseline's own words may help; a prompt without them is none of the placebos."""
    told = with_words("Run the tests before you answer.")
    with pytest.raises(NoPlacebo, match="skip_check"):
        refuse_what_counts("it", BASELINE, told, shipped_table())


@pytest.mark.slow
async def test_with_the_same_chance_the_worker_does_the_same_under_every_placebo(tmp_path: Path) -> None:
    """The table says that it cannot hear them; this asks the worker."""
    tasks = [task for task in load_suite("workspace").tasks if task.task_id in {"config_port", "csv_totals"}]
    for task in tasks:
        seen = set()
        for number, text in enumerate(["", *PLACEBOS.values()]):
            folder = tmp_path / f"{task.task_id}-{number}"
            copy_fixtures(task, folder / "workspace")
            settings = Settings(root=StateRoot(folder), tracking_uri=None, environment={})
            session = SharedServices(settings, ManualClock()).create_session(
                mode=Mode.EXPERIMENT,
                scaffold=with_words(text) if text else BASELINE,
                model="simulated/apprentice",
                workspace=folder / "workspace",
                folder=folder / "session",
                outline=task.outline,
                simulation_key=f"same/{task.task_id}",
            )
            await session.arun(task.prompt)
            seen.add(tuple(use for message in session.loop.messages for use in message.tool_uses))
            session.close()
        (calls,) = seen
        assert len(calls) > 2, "it worked"
