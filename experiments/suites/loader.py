"""Reads suites from folders, so that a user's tasks and the shipped ones have one layout.

A suite is a folder with `suite.yaml` and one folder a task. A task's folder holds `task.yaml` (what is asked),
`fixtures/` (the workspace at the start), `verify.py` (`def verify(workspace: Path) -> Outcome`) or, in its place, the
key `verify_command` in `task.yaml`, and, where a simulated worker shall be able to do it, `outline.yaml`. `solution/`
holds the files of a right end state that differ from the fixtures; only `geode suite check` looks at it. Whatever
begins with `_` or `.` is no task. `environment` in `task.yaml` replaces that of `suite.yaml`; `null` means none.

An entry point of the group `geode.suites` names a package whose folder is such a suite. It is imported when a suite of
that name is asked for; whatever it raises is reported as a `SuiteError`. A shipped suite's name cannot be taken over.
"""

import difflib
import hashlib
import os
import shutil
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from experiments.suite import Suite, Task, Verifier
from experiments.suites.environments import DeclaredEnvironment
from experiments.suites.strict_yaml import parse_yaml
from experiments.suites.verify_command import CommandVerifier
from experiments.suites.verify_file import load_verifier
from geode.canonical import content_hash
from geode.llm.outline import Outline, OutlineCall
from geode.tools.environment import LOCAL

ENTRY_POINT_GROUP = "geode.suites"

_SHIPPED = Path(__file__).parent
_CACHE = "__pycache__"
# What a verifier that imports the shared checks depends on besides its own folder.
_SHARED_CHECKS = tuple(_SHIPPED / name for name in ("strict_yaml.py", "verifying.py"))

Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Model = TypeVar("_Model", bound=BaseModel)


class SuiteError(Exception):
    """A suite that cannot be used. The text names the file, the key and the next step."""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SuiteFile(_File):
    """`suite.yaml`: marks a folder as a suite and says what it is for."""

    schema_: Literal["geode.suite/1"] = Field(alias="schema")
    description: Text
    environment: DeclaredEnvironment | None = None


class WrongEndState(_File):
    """What must not pass: the `calls` are made on the right end state, and the verifier has to notice."""

    name: Identifier
    calls: Annotated[tuple[OutlineCall, ...], Field(min_length=1)]


class TaskFile(_File):
    """`task.yaml`: what is asked of the agent, and end states that the verifier must refuse."""

    schema_: Literal["geode.task/1"] = Field(alias="schema")
    id: Identifier
    family: Identifier
    prompt: Text
    wrong_end_states: tuple[WrongEndState, ...] = ()
    verify_command: Text | None = None
    verify_time_limit_s: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    environment: DeclaredEnvironment | None = None


def suite_names() -> tuple[str, ...]:
    """Return the names that `load_suite` knows, shipped ones and those of entry points, sorted."""
    shipped = {path.parent.name for path in _SHIPPED.glob("*/suite.yaml")}
    return tuple(sorted(shipped | entry_points(group=ENTRY_POINT_GROUP).names))


def load_suite(name: str) -> Suite:
    """Load a suite by its name, or from the folder at `name` if that holds a path separator (`./mine`).

    The `verify.py` of each task is executed, and nothing else of the task's folder.

    Raises:
        SuiteError: if there is no such suite, or it is not in order.
    """
    folder = _suite_folder(name)
    manifest = folder / "suite.yaml"
    if not manifest.is_file():
        raise SuiteError(f"{manifest} is missing; a suite's folder holds suite.yaml and one folder a task")
    inherited = _read(manifest, SuiteFile).environment
    task_folders = sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._")
    if not task_folders:
        raise SuiteError(f"{folder} holds no task; add a folder with task.yaml, fixtures/ and verify.py")
    tasks = tuple(load_task(path, inherited) for path in task_folders)
    _refuse_twins(folder, [task.task_id for task in tasks], [path.name for path in task_folders])
    return Suite(name=folder.name if _is_path(name) else name, tasks=tasks)


def load_task(folder: Path, inherited: DeclaredEnvironment | None = None) -> Task:
    """Load the task in `folder`, which has the environment of its suite unless it says otherwise.

    Raises:
        SuiteError: if a part is missing or wrong.
    """
    described = read_task_file(folder)
    fixtures = folder / "fixtures"
    if not fixtures.is_dir():
        raise SuiteError(f"{fixtures} is missing; create the folder and put the files of the workspace into it")
    files = _files_of(folder)
    if not any(file.is_relative_to(fixtures) for file in files):
        raise SuiteError(f"{fixtures} holds no file; put the files of the workspace into it")
    outline = folder / "outline.yaml"
    own = "environment" in described.model_fields_set
    environment = described.environment if own else inherited
    task_hash = _task_hash(
        folder, files, shares_checks=described.verify_command is not None, inherited=None if own else inherited
    )
    return Task(
        task_id=described.id,
        family=described.family,
        prompt=described.prompt,
        fixtures=fixtures,
        outline=_read_outline(outline) if outline in files else None,
        task_hash=task_hash,
        verify=_verifier(folder, files, described, task_hash, environment),
        environment=environment.for_tools() if environment else LOCAL,
        environment_file=str(folder / "task.yaml" if own else folder.parent / "suite.yaml") if environment else "",
    )


def read_task_file(folder: Path) -> TaskFile:
    """Read `task.yaml` of the task in `folder`.

    Raises:
        SuiteError: if it is missing or wrong.
    """
    path = folder / "task.yaml"
    if not path.is_file():
        raise SuiteError(
            f"{path} is missing; every folder of a suite is a task, except those whose name begins with _ or ."
        )
    return _read(path, TaskFile)


def copy_fixtures(task: Task, workspace: Path) -> None:
    """Make the folder `workspace`, which must not exist yet, as the task starts.

    What Python caches stays behind: an installer leaves it among the fixtures, and no hash covers it.
    """
    shutil.copytree(task.fixtures, workspace, ignore=shutil.ignore_patterns(_CACHE))


def _is_path(name: str) -> bool:
    return os.sep in name or name in {".", "..", "~"}


def _suite_folder(name: str) -> Path:
    if _is_path(name):
        folder = Path(name).expanduser().resolve()
        if not folder.is_dir():
            raise SuiteError(f"no folder {name!r}; give the path of a folder that holds suite.yaml")
        return folder
    shipped = _SHIPPED / name
    if name and (shipped / "suite.yaml").is_file():
        return shipped
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        where = f"entry point {entry.name} = {entry.value} of the group {ENTRY_POINT_GROUP}"
        try:
            package = entry.load()
        except (Exception, SystemExit) as error:  # whatever it raises on import is that suite's fault, and named so
            raise SuiteError(f"{where} cannot be imported ({error!r}); repair or uninstall its package") from error
        if not getattr(package, "__path__", None):
            raise SuiteError(f"{where} is no package; name the package whose folder holds suite.yaml")
        return Path(package.__path__[0])
    names = suite_names()
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)};"
    raise SuiteError(f"no suite {name!r}; {hint} A folder of yours is given as a path, such as ./my_suite")


def _refuse_twins(folder: Path, ids: list[str], folder_names: list[str]) -> None:
    first: dict[str, str] = {}
    for task_id, folder_name in zip(ids, folder_names, strict=True):
        if task_id in first:
            raise SuiteError(
                f"{folder / folder_name / 'task.yaml'}: the id {task_id!r} is taken by {first[task_id]}/task.yaml;"
                " give one of them another id"
            )
        first[task_id] = folder_name


def _files_of(folder: Path) -> tuple[Path, ...]:
    """Return all files below `folder`, sorted; what Python caches beside a module is no part of a task."""
    files = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != _CACHE]
        for path in (Path(root, name) for name in (*folders, *names)):
            if path.is_symlink():
                raise SuiteError(f"{path} is a symbolic link, whose target no hash covers; put a copy in its place")
        files += [Path(root, name) for name in names]
    return tuple(sorted(files))


def _task_hash(
    folder: Path, files: tuple[Path, ...], *, shares_checks: bool, inherited: DeclaredEnvironment | None
) -> str:
    digests = {path.relative_to(folder).as_posix(): _sha256(path) for path in files}
    verifier = folder / "verify.py"
    if shares_checks or (verifier in files and b"experiments.suites.verifying" in verifier.read_bytes()):
        # With other shared checks it may give another answer, and must then be another task.
        digests |= {f"experiments.suites/{path.name}": _sha256(path) for path in _SHARED_CHECKS}
    if inherited is not None:
        digests["suite.yaml: environment"] = content_hash(inherited.model_dump(mode="json", exclude_defaults=True))
    return content_hash(digests)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _verifier(
    folder: Path,
    files: tuple[Path, ...],
    described: TaskFile,
    task_hash: str,
    environment: DeclaredEnvironment | None,
) -> Verifier:
    path = folder / "verify.py"
    if described.verify_command is not None:
        if path in files:
            raise SuiteError(f"{folder / 'task.yaml'}: 'verify_command' is set, and there is verify.py too; keep one")
        try:
            where = environment.for_command(described.verify_command) if environment else LOCAL
        except ValueError as error:
            raise SuiteError(f"{folder / 'task.yaml'}: {error}") from error
        return CommandVerifier(
            command=described.verify_command,
            task_folder=folder,
            time_limit_s=described.verify_time_limit_s,
            environment=where,
        )
    if path not in files:
        raise SuiteError(
            f"{path} is missing; write one with `def verify(workspace: Path) -> Outcome`,"
            " or set 'verify_command' in task.yaml"
        )
    try:
        return load_verifier(path, f"geode_task_{described.id}_{task_hash[:12]}", described.verify_time_limit_s)
    except ValueError as error:
        raise SuiteError(str(error)) from error


def _read_outline(path: Path) -> Outline:
    outline = _read(path, Outline)
    ids = [step.id for step in outline.steps]
    if twins := sorted({step_id for step_id in ids if ids.count(step_id) > 1}):
        raise SuiteError(f"{path}: two steps have the id {twins[0]!r}; give one of them another id")
    return outline


def _read(path: Path, model: type[_Model]) -> _Model:
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SuiteError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(content, dict):
        raise SuiteError(f"{path} holds {content!r:.60}; it must hold keys and values ({_keys_of(model)})")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise SuiteError("; ".join(f"{path}: {_explained(item, model)}" for item in error.errors())) from error


def _explained(item: ErrorDetails, model: type[BaseModel]) -> str:
    key = ".".join(str(part) for part in item["loc"])
    match item["type"]:
        case "missing":
            return f"the key {key!r} is missing; add it"
        case "extra_forbidden":
            keys = _keys_of(_model_at(model, item["loc"][:-1]))
            near = difflib.get_close_matches(str(item["loc"][-1]), keys.split(", "), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"remove it, the keys are {keys}"
            return f"unknown key {key!r}; {hint}"
        case "model_type":
            keys = _keys_of(_model_at(model, item["loc"]))
            return f"{key!r} is {item['input']!r:.80}; it holds keys and values ({keys})"
        case "value_error":
            return f"{key!r}: {item['ctx']['error']}"
        case _:
            return f"{key!r} is {item['input']!r:.80}; {item['msg'][0].lower()}{item['msg'][1:]}"


def _model_at(model: type[BaseModel], place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the model of what lies at `place` in a file that `model` describes."""
    for key in (key for key in place if isinstance(key, str)):
        (annotation,) = (f.annotation for name, f in model.model_fields.items() if key in (f.alias, name))
        parts = (annotation, *get_args(annotation))
        model = next(part for part in parts if isinstance(part, type) and issubclass(part, BaseModel))
    return model


def _keys_of(model: type[BaseModel]) -> str:
    return ", ".join(field.alias or name for name, field in model.model_fields.items())
