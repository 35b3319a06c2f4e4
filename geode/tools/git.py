"""Git as typed tools: status, diff, log, commit and branch of the repository in the workspace, and of no other.

A repository is data that the model, or whoever made the workspace, can write. So nothing that it configures is run: no
hook, pager, file monitor, external diff, text conversion or signing program; and one whose configuration would run a
program when files are read or added (a filter) is refused. Nothing reaches the network.
"""

import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pydantic import JsonValue

from geode.redaction import clean_text
from geode.tools.environment import LOCAL, Environment
from geode.tools.files import TREE_EXCLUSIVE, TREE_SHARED, shown_name
from geode.tools.output import Capture
from geode.tools.spec import Arguments, SafetyLevel, ToolFailed, ToolOutput, ToolSpec
from geode.tools.workspace import MODEL_ROOT, Workspace

_TIMEOUT_S = 60.0
_COMMANDS_MAX = 4  # of git, in one call
_LOG_MAX = 200
_ENVIRONMENT: Final = (
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_NO_LAZY_FETCH=1",
)
_SETTINGS: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.editor": "false",
    "core.quotePath": "false",
    "commit.gpgSign": "false",
    "log.showSignature": "false",
    "diff.external": "",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
}
_RUNS_A_PROGRAM = re.compile(r"^filter\..*\.(clean|smudge|process)$", re.IGNORECASE)
_SOMEBODY: Final = {"user.name": "agent", "user.email": "agent@localhost"}
_NAME: Final[dict[str, JsonValue]] = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_./@^~-]{0,199}$",
    "description": "A branch, a tag, or a commit.",
}
_PATH: Final[dict[str, JsonValue]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4_096,
    "description": f"A file or folder, relative to the workspace or below {MODEL_ROOT}.",
}


@dataclass(frozen=True, slots=True)
class _Repository:
    """The repository of one workspace, and where git runs."""

    workspace: Workspace
    environment: Environment

    async def run(self, *arguments: str, settings: Mapping[str, str] = _SETTINGS) -> ToolOutput:
        """Run git, and return what it printed."""
        root = self.environment.workspace_path(self.workspace.root)
        configured = (part for key, value in settings.items() for part in ("-c", f"{key}={value}"))
        places = (f"--git-dir={root}/.git", f"--work-tree={root}", "--literal-pathspecs", "--no-pager")
        capture = Capture()
        finished = await self.environment.run(
            ("/usr/bin/env", *_ENVIRONMENT, "git", *places, *configured, *arguments),
            workspace=self.workspace.root,
            timeout_s=_TIMEOUT_S,
            capture=capture,
        )
        text = self.workspace.hide(capture.text(), root).rstrip("\n")
        if finished.exit_code is None:
            raise ToolFailed(f"git {arguments[0]} did not end within {_TIMEOUT_S:g} s, and was stopped")
        return ToolOutput(text=text, is_error=finished.exit_code != 0)

    async def check(self) -> None:
        """Refuse a workspace without a repository of its own, and a repository that would run programs.

        Raises:
            ToolFailed: saying which, and what can be done.
        """
        own = self.workspace.root / ".git"
        if own.is_symlink() or not own.is_dir() or (own / "commondir").exists():
            raise ToolFailed(f"{MODEL_ROOT} has no git repository of its own; make one with `git init` in a shell")
        listed = await self.run("config", "--list", "--includes", "--name-only", settings={})
        if listed.is_error:
            raise ToolFailed(f"the repository's configuration cannot be read: {listed.text}")
        if found := next((key for key in listed.text.splitlines() if _RUNS_A_PROGRAM.match(key)), None):
            raise ToolFailed(
                f"the repository's configuration runs a program when files are read ({found}), which these tools do"
                " not do; ask whoever you work for"
            )

    async def is_set(self, key: str) -> bool:
        """Return whether the repository's own configuration has a value for `key`."""
        return not (await self.run("config", "--get", key, settings={})).is_error

    def path(self, text: str) -> str:
        """Return the path that git is given for what the model wrote.

        Raises:
            OutOfScope: if it leads out of the workspace.
        """
        folder, name = posixpath.split(text.rstrip("/"))
        if name in ("", ".", ".."):
            return self.workspace.display(self.workspace.resolve(text))
        # A link is named as itself, not as what it leads to: git keeps links.
        return self.workspace.display(self.workspace.resolve(folder or ".") / name)


def git_tools(workspace: Workspace, environment: Environment = LOCAL) -> dict[str, ToolSpec]:
    """Return the git tools on the repository in `workspace`, by name; git runs in `environment`."""
    repository = _Repository(workspace, environment)
    return {action.name: _tool(repository, action) for action in _ACTIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    name: str
    description: str
    level: SafetyLevel
    run: Callable[[_Repository, Arguments], Awaitable[ToolOutput]]
    properties: dict[str, JsonValue]
    required: tuple[str, ...] = ()


def _tool(repository: _Repository, action: _Action) -> ToolSpec:
    claim = TREE_SHARED if action.level is SafetyLevel.READ else TREE_EXCLUSIVE
    return ToolSpec(
        name=action.name,
        description=action.description,
        input_schema={
            "type": "object",
            "properties": action.properties,
            "required": list(action.required),
            "additionalProperties": False,
        },
        level=action.level,
        handler=partial(_checked, repository, action),
        timeout_s=_COMMANDS_MAX * (_TIMEOUT_S + repository.environment.overhead_s),
        check_scope=partial(_check_scope, repository),
        claims=lambda _: (claim,),
    )


def _check_scope(repository: _Repository, arguments: Arguments) -> None:
    paths = arguments.get("paths")
    for path in (arguments.get("path"), *(paths if isinstance(paths, list) else ())):
        if isinstance(path, str):
            repository.path(path)


async def _checked(repository: _Repository, action: _Action, arguments: Arguments) -> ToolOutput:
    await repository.check()
    return await action.run(repository, arguments)


async def _status(repository: _Repository, _: Arguments) -> ToolOutput:
    told = await repository.run("status", "--short", "--branch", "--untracked-files=all", "--ignore-submodules=all")
    return replace(told, text="\n".join(map(shown_name, told.text.split("\n"))))


async def _diff(repository: _Repository, arguments: Arguments) -> ToolOutput:
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
    staged = ("--cached",) if arguments.get("staged") else ()
    against = (str(arguments["against"]),) if "against" in arguments else ()
    return _or(
        await repository.run("diff", *options, *staged, *against, "--", *_paths(repository, arguments)), "no change"
    )


async def _log(repository: _Repository, arguments: Arguments) -> ToolOutput:
    shown = ("--no-color", "--no-show-signature", "--date=iso-strict", "--format=%h %ad %an: %s")
    of = (str(arguments["of"]),) if "of" in arguments else ()
    count = f"--max-count={arguments.get('count', 20)}"
    return _or(await repository.run("log", *shown, count, *of, "--", *_paths(repository, arguments)), "no commit")


async def _commit(repository: _Repository, arguments: Arguments) -> ToolOutput:
    """Stage and commit. What is staged stays so if there is nothing to commit, and git says it."""
    paths = arguments.get("paths")
    chosen = [repository.path(str(path)) for path in paths] if isinstance(paths, list) else ["."]
    added = await repository.run("add", "--all", "--", *chosen)
    if added.is_error:
        return added
    settings = dict(_SETTINGS)
    if not await repository.is_set("user.email"):
        settings |= _SOMEBODY
    only = ("--only", "--", *chosen) if isinstance(paths, list) else ()
    message = clean_text(str(arguments["message"]))
    done = await repository.run(
        "commit", "--no-verify", "--no-gpg-sign", "--no-status", f"--message={message}", *only, settings=settings
    )
    return done if done.is_error else ToolOutput(text=done.text.split("\n", 1)[0])


async def _branch(repository: _Repository, arguments: Arguments) -> ToolOutput:
    name = arguments.get("name")
    if arguments["action"] == "list":
        return _or(await repository.run("branch", "--no-color", "--all"), "no branch")
    if not isinstance(name, str):
        raise ToolFailed(f"{arguments['action']} needs a name")
    start = (str(arguments["start"]),) if "start" in arguments else ()
    create = ("--create",) if arguments["action"] == "create" else ()
    switched = await repository.run("switch", "--no-progress", "--no-guess", *create, name, *start)
    return _or(switched, f"on branch {name}")


def _paths(repository: _Repository, arguments: Arguments) -> tuple[str, ...]:
    return (repository.path(str(arguments["path"])),) if "path" in arguments else ()


def _or(output: ToolOutput, nothing: str) -> ToolOutput:
    return output if output.text.strip() else ToolOutput(text=nothing, is_error=output.is_error)


_ACTIONS: Final = (
    _Action(
        name="git_status",
        description="Show the branch, and which files are changed, staged or new.",
        level=SafetyLevel.READ,
        run=_status,
        properties={},
    ),
    _Action(
        name="git_diff",
        description="Show changes as a diff: of the work tree, of what is staged, or `against` a commit.",
        level=SafetyLevel.READ,
        run=_diff,
        properties={"path": _PATH, "staged": {"type": "boolean"}, "against": _NAME},
    ),
    _Action(
        name="git_log",
        description="List commits, newest first: hash, time, author and subject.",
        level=SafetyLevel.READ,
        run=_log,
        properties={"path": _PATH, "count": {"type": "integer", "minimum": 1, "maximum": _LOG_MAX}, "of": _NAME},
    ),
    _Action(
        name="git_commit",
        description="Commit the changes of `paths`, or all changes. Hooks of the repository are not run.",
        level=SafetyLevel.WRITE,
        run=_commit,
        properties={
            "message": {"type": "string", "minLength": 1, "maxLength": 20_000, "pattern": r"\S"},
            "paths": {"type": "array", "items": _PATH, "minItems": 1, "maxItems": 1_000},
        },
        required=("message",),
    ),
    _Action(
        name="git_branch",
        description="List branches, create one (and switch to it), or switch to one that exists.",
        level=SafetyLevel.WRITE,
        run=_branch,
        properties={"action": {"enum": ["list", "create", "switch"]}, "name": _NAME, "start": _NAME},
        required=("action",),
    ),
)

GIT_TOOLS: Final = tuple(action.name for action in _ACTIONS)
"""The names of what `git_tools` gives."""
