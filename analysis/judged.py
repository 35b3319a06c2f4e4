"""What can be judged: episodes of our own and samples of Inspect logs, each as a judge sees it, with its ledger."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.arms import parse_arm
from analysis.foreign_inspect import EVAL_SUFFIX, attempt_name, parse_attempt_name
from analysis.foreign_logs import is_log_path
from analysis.importers.inspect_eval import EvalLog
from analysis.importers.inspect_records import Message, Sample
from analysis.importers.inspect_target import TARGET, target_conversation
from analysis.show import find_folder
from experiments.roles import Role
from experiments.sinks import StoredEpisode
from experiments.store import list_experiments, load_cells, look_at
from geode.config.paths import StateRoot
from geode.loop.prompt import system_prompt
from geode.records.folder import SessionFolder
from geode.scaffold import Scaffold
from judges.ledger import FILE
from judges.recorded import Record
from judges.stored_view import steps_of_folder
from judges.view import EpisodeView, Spent, Step, StepKind


class NothingToJudge(LookupError):  # noqa: N818  (named by what is missing)
    """What was named holds no episode that can be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One episode to judge. `view` reads it, and may raise what reading its record raises.

    `ledger` is where its judgments are kept. `outcome` is 1 for PASS, 0 for FAIL, None where no verifier spoke.
    `recorded` is what the log's own judges said, by scorer. `family` is its unit of independence; episodes of one
    `scenario` differ only by chance: the same task and seed, done by the same. Both are empty where they are not known.
    """

    name: str
    ledger: Path
    view: Callable[[], EpisodeView]
    family: str = ""
    scenario: str = ""
    outcome: float | None = None
    recorded: Mapping[str, Record]


def find_subjects(root: StateRoot, wanted: str) -> tuple[Subject, ...]:
    """Return what `wanted` names: `EXPERIMENT`, `EXPERIMENT:VARIANT`, an episode by key or folder, or Inspect logs.

    Logs are a `.eval` file, `LOG.eval#SAMPLE/EPOCH`, or a folder of such files.

    Raises:
        NothingToJudge: if there is nothing to judge in it.
        EpisodeNotFound: if it is no key of an episode, either.
        ArchiveError, StoreError: if a log or a record cannot be read.
    """
    path = Path(wanted).expanduser()
    if EVAL_SUFFIX in wanted or (is_log_path(wanted) and path.is_dir() and any(path.glob(f"*{EVAL_SUFFIX}"))):
        found = tuple(_of_logs(root, wanted))
    elif parse_arm(wanted).experiment in list_experiments(root):
        found = tuple(_of_experiment(root, wanted))
    else:
        found = (_of_folder(find_folder(root, wanted)),)
    if not found:
        raise NothingToJudge(f"{wanted!r} holds no finished episode; geode ls names what there is")
    return found


def _of_experiment(root: StateRoot, wanted: str) -> Iterator[Subject]:
    arm = parse_arm(wanted)
    cells = load_cells(root, arm.experiment)
    if arm.variant is not None and arm.variant not in (names := [cell.variant.name for cell in cells]):
        raise NothingToJudge(f"{arm.experiment!r} has no variant {arm.variant!r}; it has {', '.join(names)}")
    seen = set()
    for cell in cells:
        if arm.variant in {None, cell.variant.name}:
            for stored in cell.episodes:
                # Two variants may be the same scaffold, and share their episodes.
                if stored.record.session_id and stored.record.episode_key not in seen:
                    seen.add(stored.record.episode_key)
                    yield _of_episode(stored)


def _of_folder(folder: Path) -> Subject:
    record = look_at(folder).record
    if record is not None and record.session_id:
        return _of_episode(StoredEpisode(record=record, folder=folder))
    if not SessionFolder(folder).checkpoint.is_file():
        raise NothingToJudge(f"{folder} holds no session: nothing happened in it that could be judged")
    return Subject(
        name=folder.name,
        ledger=folder / FILE,
        view=lambda: _view_of_session(folder),
        family=folder.name,
        scenario=folder.name,
        recorded={},
    )


def _of_episode(stored: StoredEpisode) -> Subject:
    record, folder = stored.record, stored.folder

    def view() -> EpisodeView:
        shown = _view_of_session(folder)
        return EpisodeView(
            episode=record.episode_key,
            task=record.task_id,
            family=record.family,
            target=record.roles.get(Role.TARGET, ""),
            system=shown.system,
            prompt=shown.prompt,
            answer=shown.answer,
            steps=shown.steps,
            spent=shown.spent,
        )

    return Subject(
        name=record.episode_key,
        ledger=folder / FILE,
        view=view,
        family=record.family,
        scenario=f"{record.scaffold_id}/{record.task_hash}/{record.seed}",
        outcome=_VALUES[record.outcome.kind],
        recorded={},
    )


_VALUES = {"PASS": 1.0, "FAIL": 0.0, "INVALID": None}


def _view_of_session(folder: Path) -> EpisodeView:
    """Show a session of our own. Its task is not on record there, so it is a family of its own."""
    state = SessionFolder(folder).read_state()
    scaffold = Scaffold.model_validate(state["scaffold"])
    steps = steps_of_folder(folder)
    rounds = sum(_answers(steps))
    return EpisodeView(
        episode=folder.name,
        task="",
        family=folder.name,
        target=str(state.get("model", "")),
        system=system_prompt(scaffold),
        prompt=_first(steps, StepKind.PROMPT),
        answer=_last_said(steps),
        steps=steps,
        spent=Spent(rounds=rounds, rounds_max=scaffold.limits.rounds),
    )


def _answers(steps: Sequence[Step]) -> Iterator[bool]:
    """Yield, for each step, whether a message of the model begins with it."""
    before = StepKind.PROMPT
    for step in steps:
        by_model = step.kind in {StepKind.SAID, StepKind.CALLED}
        yield by_model and before not in {StepKind.SAID, StepKind.CALLED}
        before = step.kind


def _of_logs(root: StateRoot, wanted: str) -> Iterator[Subject]:
    named = parse_attempt_name(wanted)
    logs = [named.log.expanduser()] if named else sorted(Path(wanted).expanduser().glob(f"*{EVAL_SUFFIX}"))
    for path in logs:
        log = EvalLog.open(path)
        roles = log.header.roles
        # The run's own id, since logs of one name may come from several places.
        ledger = root.judgments / f"{path.stem}.{(log.header.eval_id or 'unnamed')[:8]}.jsonl"
        for sample in log.samples():
            if named and named.sample_id not in {None, sample.sample_id}:
                continue
            if named and named.sample_id is not None and named.epoch != sample.epoch:
                continue
            conversation = target_conversation(sample)
            if conversation:
                yield _of_sample(ledger, path, sample, roles, conversation)


def _of_sample(
    ledger: Path, path: Path, sample: Sample, roles: Mapping[str, str], conversation: tuple[Message, ...]
) -> Subject:
    name = attempt_name(Path(path.name), sample.sample_id, sample.epoch)
    steps = tuple(_steps(conversation))
    view = EpisodeView(
        episode=name,
        task=sample.sample_id,
        family=sample.sample_id,
        target=roles.get(TARGET, ""),
        system="\n\n".join(message.text for message in conversation if message.role == "system"),
        prompt=_first(steps, StepKind.PROMPT),
        answer=_last_said(steps),
        steps=steps,
        spent=Spent(rounds=sum(message.role == "assistant" for message in conversation)),
    )
    return Subject(
        name=name,
        ledger=ledger,
        view=lambda: view,
        family=view.family,
        scenario=f"{view.target}/{view.task}",
        recorded=_recorded(sample, roles),
    )


def _steps(conversation: Sequence[Message]) -> Iterator[Step]:
    for message in conversation:
        match message.role:
            case "user":
                yield Step(kind=StepKind.PROMPT, text=message.text)
            case "assistant":
                if message.text.strip():
                    yield Step(kind=StepKind.SAID, text=message.text)
                for use in message.tool_uses:
                    yield Step(kind=StepKind.CALLED, text=use.arguments, call_id=use.call_id, tool=use.tool)
            case "tool":
                text = message.error if message.error is not None else message.text
                yield Step(
                    kind=StepKind.RESULT,
                    text=text,
                    call_id=message.call_id or "",
                    tool=message.tool or "",
                    is_error=message.error is not None,
                )
            case _:
                pass  # the system prompt stands apart


def _recorded(sample: Sample, roles: Mapping[str, str]) -> Mapping[str, Record]:
    scores: dict[str, dict[str, float]] = {}
    unscored: dict[str, str] = {}
    for score in sample.scores:
        of_scorer = scores.setdefault(score.scorer, {})
        if score.value is not None:
            of_scorer[score.dimension] = score.value
        else:
            unscored[score.scorer] = score.unscored or ""
    judge = roles.get(Role.JUDGE, "")
    return {
        scorer: Record(values=dict(values), model=judge, scorer=scorer, unscored=unscored.get(scorer, ""))
        for scorer, values in scores.items()
        if scorer
    }


def _first(steps: Sequence[Step], kind: StepKind) -> str:
    return next((step.text for step in steps if step.kind is kind), "")


def _last_said(steps: Sequence[Step]) -> str:
    return next((step.text for step in reversed(steps) if step.kind is StepKind.SAID), "")


def recorded_by(subjects: Sequence[Subject], scorer: str = "") -> Mapping[str, Record]:
    """Return what one scorer of the logs said, by episode; without a name, the only scorer that there is.

    An episode that it did not judge is left out, whoever else did.

    Raises:
        NothingToJudge: if nothing is on record, or several scorers are and none is named.
    """
    names = sorted({name for subject in subjects for name in subject.recorded})
    if not names:
        raise NothingToJudge("no judge's values are on record for these episodes; only foreign logs hold such")
    if scorer not in names and (scorer or len(names) > 1):
        raise NothingToJudge(
            f"the scorer {scorer!r} is not on record; there are {', '.join(names)}: judge.scorer=NAME takes one"
        )
    chosen = scorer or names[0]
    return {subject.name: subject.recorded[chosen] for subject in subjects if chosen in subject.recorded}


def shown_name(subject: Subject) -> str:
    """Return the name of an episode as a line has room for it."""
    return subject.name[:12] if len(subject.name) == 64 else json.dumps(subject.name)[1:-1]
