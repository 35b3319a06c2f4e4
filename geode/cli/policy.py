"""`geode policy`: what the rules would answer, before anything asks them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from geode.executor.policy import Mode
    from geode.serve.policy import Policies

EXIT_ASK, EXIT_DENY = 3, 4
_EXAMPLES = """Examples:  geode policy check 'git status && curl example.org'
           geode policy check --tool write_file .github/workflows/ci.yml --mode daemon"""


def register(app: typer.Typer) -> None:
    """Add `policy`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at what policy says.")
    group.callback()(lambda: None)
    group.command("check", epilog=_EXAMPLES)(check)
    group.command("ls", epilog="Example:  geode policy ls --mode daemon")(list_rules)
    app.add_typer(group, name="policy")


_MODE = typer.Option("repl", help="The mode: repl, ipc, daemon, mcp or experiment.")
_WORKSPACE = typer.Option(Path(), help="The folder that the agent would work in.")
_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")


def check(
    what: str = typer.Argument(..., help="A shell command; with --tool the path that the tool would get."),
    *,
    tool: str = typer.Option("shell", help="The tool that is asked for."),
    mode: str = _MODE,
    workspace: Path = _WORKSPACE,
    root: Path = _ROOT,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Say what policy would answer to a call, and why. Nothing runs.

    Exit code 0: it goes ahead; 3: somebody is asked, which is a no where nobody is; 4: it is denied; 2: a policy file
    cannot be used.
    """
    from geode.cli.failure import fail
    from geode.executor.policy import Authority
    from geode.serve.policy import explain

    chosen, folder, policies = _chosen(mode, workspace, root)
    try:
        answer = explain(policies, chosen, folder, tool, what)
    except KeyError as unknown:
        fail(f"there is no tool {tool!r}; there are {unknown.args[0]}", 2)
    if as_json:
        typer.echo(json.dumps(answer.to_json(), ensure_ascii=False, indent=1))
    else:
        for line in answer.lines():
            typer.echo(line)
    raise typer.Exit({Authority.ALLOW: 0, Authority.ASK: EXIT_ASK, Authority.DENY: EXIT_DENY}[answer.authority])


def list_rules(mode: str = _MODE, workspace: Path = _WORKSPACE, root: Path = _ROOT) -> None:
    """List the rules that hold in a mode, each with its place. Exit code 2: a policy file cannot be used."""
    from geode.tools.workspace import Workspace

    chosen, folder, policies = _chosen(mode, workspace, root)
    placed = policies.rules(chosen, Workspace(folder)).placed
    for rule in placed:
        typer.echo(rule.shown)
    if not placed:
        typer.echo(f"no rule holds in {chosen} mode; write some into {policies.root.policy}", err=True)


def _chosen(mode: str, workspace: Path, root: Path | None) -> "tuple[Mode, Path, Policies]":
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.executor.policy import Mode
    from geode.serve.policy import Policies

    try:
        chosen = Mode(mode)
    except ValueError:
        fail(f"there is no mode {mode!r}; there are {', '.join(Mode)}", 2)
    if not workspace.is_dir():
        fail(f"the workspace {str(workspace)!r} is no folder; name one with --workspace", 2)
    return chosen, workspace.resolve(), Policies.read(settings_of(root).root)
