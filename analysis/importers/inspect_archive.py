"""Reads folders of Inspect logs: every log with all of its samples, and in words what is irregular about it."""

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from analysis.importers.files import DamagedArchive, UnknownArchive
from analysis.importers.inspect_eval import EvalLog
from analysis.importers.inspect_records import EvalStatus, Header, Sample, Score
from analysis.importers.inspect_tables import IndexEntry, Tables, read_tables
from analysis.issues import Issue, IssueKind
from geode.redaction import clean_text

_LEVELS_DOWN = 4
_TEXT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLog:
    """One log as it is imported. `run` is the folder that it lay in; the samples are without their large parts."""

    run: str
    path: Path
    size_bytes: int
    header: Header
    samples: tuple[Sample, ...]

    @property
    def name(self) -> str:
        """The log's name within its folder."""
        return self.path.stem

    @property
    def named(self) -> tuple[str, str]:
        """Folder and name: what is one log, wherever it lies."""
        return self.run, self.name

    @property
    def scores(self) -> tuple[Score, ...]:
        """Every score of every sample."""
        return tuple(score for sample in self.samples for score in sample.scores)

    def episode_key(self, sample: Sample) -> str:
        """Name a sample uniquely within the archive."""
        return f"inspect:{self.run}/{self.name}/{sample.sample_id}#{sample.epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectArchive:
    """What a path holds: logs, and tables that others made of logs, of those too that are not here."""

    path: Path
    logs: tuple[ImportedLog, ...]
    tables: Tables
    issues: tuple[Issue, ...]


def find_logs(path: Path) -> tuple[Path, ...]:
    """Return the `.eval` files at `path`, at most four folders down; none if there are none.

    Raises:
        DamagedArchive: if a folder cannot be listed.
    """
    if path.suffix == ".eval" and path.is_file():
        return (path,)
    try:
        return tuple(sorted(log for depth in range(_LEVELS_DOWN + 1) for log in path.glob("*/" * depth + "*.eval")))
    except OSError as error:
        raise DamagedArchive(f"{path} cannot be listed: {error}; nothing was imported") from error


def read_inspect_archive(path: Path) -> InspectArchive:
    """Read the log, or every log below the folder, at `path`. In a folder, what is no readable log becomes an issue.

    Raises:
        UnknownArchive: if there is no log.
        DamagedArchive: if `path` is a log that cannot be read, or a table beside the logs is damaged.
    """
    path = path.expanduser().resolve()
    found = find_logs(path)
    if not found:
        raise UnknownArchive(f"{path} has no .eval log, also not up to {_LEVELS_DOWN} folders down")
    issues: list[Issue] = []
    logs: dict[tuple[str, str], ImportedLog] = {}
    for file in found:
        place = file.relative_to(path if path.is_dir() else path.parent).as_posix()
        named = (file.parent.name, file.stem)
        if named in logs:
            text = f"{logs[named].path} has the same name in a folder of the same name, and was imported; this was not"
            issues.append(_issue(IssueKind.FILE_NOT_IMPORTED, place, text, named))
            continue
        try:
            log = _read_log(file, place, issues)
        except DamagedArchive as error:
            if path == file:
                raise
            issues.append(_issue(IssueKind.LOG_UNREADABLE, place, f"{error}; left out", named))
        else:
            logs[named] = log
    tables = _read_tables(path, found, issues) if path.is_dir() else Tables()
    issues += _index_issues(tables.index, logs.values())
    issues += _folder_issues(logs.values())
    return InspectArchive(path=path, logs=tuple(logs.values()), tables=tables, issues=tuple(issues))


def _read_tables(path: Path, logs: Iterable[Path], issues: list[Issue]) -> Tables:
    """Read the tables in the archive's folder and beside its logs, and say what else lies there."""
    tables = Tables()
    for folder in sorted({path, *(log.parent for log in logs)}):
        here = read_tables(folder)
        tables += here
        if here == Tables() and all(log.parent != folder for log in logs):
            continue
        for file in sorted(folder.iterdir()):
            if file.is_file() and file.suffix != ".eval" and file.name not in here.files:
                text = "neither a log nor a table that this version reads; left as it is"
                place = file.relative_to(path).as_posix()
                issues.append(_issue(IssueKind.FILE_NOT_IMPORTED, place, text, (folder.name, "")))
    return tables


def _read_log(path: Path, place: str, issues: list[Issue]) -> ImportedLog:
    log = EvalLog.open(path)
    # Without their large parts: the transcripts of a folder need not fit in memory together.
    samples = tuple(dataclasses.replace(sample, body={}) for sample in log.samples())
    imported = ImportedLog(
        run=path.parent.name,
        path=path,
        size_bytes=path.stat().st_size,
        header=log.header,
        samples=samples,
    )
    named = imported.named
    notes = [*_log_issues(imported), *_sample_issues(imported), *_contradictions(imported, log.scores())]
    for kind, text, concerned in notes:
        key = imported.episode_key(concerned) if concerned else ""
        issues.append(_issue(kind, place, text, named, key))
    return imported


_Note = tuple[IssueKind, str, Sample | None]


def _log_issues(log: ImportedLog) -> Iterable[_Note]:
    header, count = log.header, len(log.samples)
    if not header.has_header:
        text = f"the run was killed: no header.json; status `started`, {count} samples from what it had written"
        yield IssueKind.LOG_KILLED, text, None
    elif header.status is not EvalStatus.SUCCESS:
        why = (header.error or "no error recorded")[:_TEXT_CHARS]
        yield IssueKind.LOG_NOT_SUCCESSFUL, f"it ended with the status `{header.status}`: {why}", None
    if not count:
        yield IssueKind.LOG_EMPTY, "no sample had ended; nothing was measured", None
    if header.status is EvalStatus.SUCCESS and header.dataset_samples is not None:
        planned = header.dataset_samples * (header.epochs or 1)
        if planned != count:
            text = f"by its data set {planned} samples are to be expected; the log has {count}, which are what counts"
            yield IssueKind.DATASET_SIZE_DIFFERS, text, None
    for oddity in header.oddities:
        kind = IssueKind.FIELD_MISSING if oddity.missing else IssueKind.FIELD_ODD
        yield kind, f"{oddity.text}; NULL in its column", None


def _sample_issues(log: ImportedLog) -> Iterable[_Note]:
    judged_in = Counter(filter(None, (_dimensions(sample) for sample in log.samples)))
    usual = max(judged_in, key=lambda names: (judged_in[names], len(names)), default=frozenset[str]())
    for sample in log.samples:
        name = f"sample {sample.sample_id!r} of epoch {sample.epoch}"
        if sample.error is not None:
            yield IssueKind.SAMPLE_FAILED, f"{name}: {sample.error[:_TEXT_CHARS]}; INVALID as an outcome", sample
        unscored = [score for score in sample.scores if score.unscored is not None]
        if unscored and sample.error is None:
            reasons = "; ".join(dict.fromkeys(f"{s.dimension} {s.unscored}".strip() for s in unscored))
            yield IssueKind.SAMPLE_UNSCORED, f"{name}: {reasons}; counted, never as a number", sample
        judged = _dimensions(sample)
        if judged and judged != usual:
            text = f"{name} is judged in other dimensions than the others: {', '.join(sorted(judged ^ usual))}"
            yield IssueKind.DIMENSIONS_DIFFER, text, sample
        for oddity in sample.oddities:
            kind = IssueKind.FIELD_MISSING if oddity.missing else IssueKind.FIELD_ODD
            yield kind, f"{name}: {oddity.text}; NULL in its column", sample


def _dimensions(sample: Sample) -> frozenset[str]:
    return frozenset(score.dimension for score in sample.scores if score.dimension)


def _contradictions(log: ImportedLog, summarised: Iterable[Score]) -> Iterable[_Note]:
    told = {(s.sample_id, s.epoch, s.scorer, s.dimension): s.value for s in summarised}
    real = {(s.sample_id, s.epoch, s.scorer, s.dimension): s.value for s in log.scores}
    if told != real:
        differing = sorted(map(str, {key for key in told.keys() | real.keys() if told.get(key) != real.get(key)}))
        text = f"its summaries differ from its samples in {len(differing)} scores, first in {differing[:1]}"
        yield IssueKind.SUMMARY_CONTRADICTS_SAMPLES, f"{text}; the samples are what counts", None
    # Over epochs Inspect reduces first, so that only a single epoch has a mean that is comparable.
    means = mean_scores(log) if log.header.epochs == 1 else {}
    wrong = [
        f"{name} is {claimed:g}, not {means[name]:g}"
        for name, claimed in log.header.reported_means.items()
        if name in means and not math.isclose(claimed, means[name], rel_tol=1e-9, abs_tol=1e-9)
    ]
    if wrong:
        text = f"its own means differ from its samples: {'; '.join(wrong)[:_TEXT_CHARS]}"
        yield IssueKind.RESULTS_CONTRADICT_SAMPLES, f"{text}; the samples are what counts", None


def mean_scores(log: ImportedLog) -> dict[str, float]:
    """Return the mean of each dimension over the samples that were scored; under its scorer's name if it has none.

    Where two scorers share a dimension, both are named.
    """
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for score in log.scores:
        if score.value is not None:
            values[score.scorer, score.dimension or score.scorer].append(score.value)
    shared = Counter(dimension for _, dimension in values)
    return {
        dimension if shared[dimension] == 1 else f"{scorer}.{dimension}": fmean(found)
        for (scorer, dimension), found in values.items()
    }


def _index_issues(index: Iterable[IndexEntry], logs: Iterable[ImportedLog]) -> Iterable[Issue]:
    entries = {entry.file: entry for entry in index}
    for log in logs:
        entry = entries.get(log.path.name)
        if entry is None:
            continue
        told = (entry.status, entry.has_header, entry.samples, entry.judged)
        judged = sum(any(score.scorer for score in sample.scores) for sample in log.samples)
        real = (log.header.status.value, log.header.has_header, len(log.samples), judged)
        if told != real:
            text = f"the index says {told} (status, header, samples, judged), the log {real}; the log is what counts"
            yield _issue(IssueKind.INDEX_CONTRADICTS_LOG, log.path.name, text, log.named)


def _folder_issues(logs: Iterable[ImportedLog]) -> Iterable[Issue]:
    """Say which logs were judged in other dimensions than most of their folder: their totals are of another kind."""
    judged_in: dict[str, dict[tuple[str, str], frozenset[str]]] = defaultdict(dict)
    for log in logs:
        if dimensions := frozenset[str]().union(*map(_dimensions, log.samples)):
            judged_in[log.run][log.named] = dimensions
    for of_folder in judged_in.values():
        usual, count = Counter(of_folder.values()).most_common(1)[0]
        for named, dimensions in of_folder.items():
            if dimensions != usual and 2 * count > len(of_folder):
                text = f"judged in {len(dimensions)} dimensions, most logs of its folder in {len(usual)}; not in both: "
                text += ", ".join(sorted(dimensions ^ usual))
                yield _issue(IssueKind.DIMENSIONS_DIFFER, "/".join(named), text, named)


def _issue(kind: IssueKind, place: str, text: str, named: tuple[str, str], key: str = "") -> Issue:
    run, cell = named
    return Issue(kind=kind, place=place, text=clean_text(text), run=run, cell=cell, episode_key=key)
