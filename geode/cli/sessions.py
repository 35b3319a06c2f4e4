"""`geode sessions`: what was, and going on with what a dead process left."""

import json
from pathlib import Path

import typer

_SESSION = typer.Argument(..., help="The session, or the beginning of its name; last is the newest.")
_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")


def register(app: typer.Typer) -> None:
    """Add `sessions`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List and show sessions, and resume one.")
    group.command("ls", epilog="Example:  geode sessions ls")(list_sessions)
    group.command("show", epilog="Example:  geode sessions show last")(show)
    group.command("resume", epilog="Example:  geode sessions resume 01JZ --workspace .")(resume)
    app.add_typer(group, name="sessions")


def list_sessions(root: Path = _ROOT) -> None:
    """List the sessions of the state root, newest last."""
    from geode.cli.state import settings_of
    from geode.records.folder import SessionFolder

    sessions, code = settings_of(root).root.sessions, 0
    for folder in sorted(entry for entry in sessions.iterdir() if entry.is_dir()) if sessions.is_dir() else ():
        records = SessionFolder(folder)
        try:
            state = records.read_state()
            typer.echo(f"{folder.name}  {state['status']}  {state['model']}  {state['updated_at']}")
        except FileNotFoundError:
            typer.echo(f"{folder.name}  never began: it has no {records.state.name}")
        except (ValueError, KeyError) as error:
            code = 1
            text = f"{records.state} lacks {error}; restore it" if isinstance(error, KeyError) else str(error)
            typer.echo(f"{folder.name}  damaged: {text}", err=True)
    raise typer.Exit(code)


def show(
    session: str = _SESSION,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    root: Path = _ROOT,
) -> None:
    """Show what a session did, what of it is open, and the command to type next. Nothing is changed.

    One that runs is shown by its timeline, a damaged one as far as it can be read. Exit code 1: nothing can be shown.
    """
    from geode.cli.failure import fail
    from geode.cli.session_shown import lines, report_to_json
    from geode.cli.shown import shown
    from geode.cli.state import session_folder, settings_of
    from geode.clock import SystemClock
    from geode.records.folder import SessionFolder
    from geode.records.report import NothingOnRecord, read_report
    from geode.redaction import Redactor

    settings = settings_of(root)
    folder = session_folder(settings.root.sessions, session)
    try:
        report = read_report(SessionFolder(folder), SystemClock())
    except NothingOnRecord as reason:
        fail(f"nothing of session {folder.name} can be shown: {reason}")
    # Messages are stored as they were said, keys and all.
    clean = Redactor.of_environment(dict(settings.environment)).redact
    if as_json:
        typer.echo(clean(json.dumps(report_to_json(report), ensure_ascii=False, indent=1)))
        return
    for problem in report.problems:
        typer.echo(f"geode: {problem}", err=True)
    for line in lines(report):
        typer.echo("\n".join(shown(clean(line)).lines))


def resume(
    session: str = _SESSION,
    workspace: Path = typer.Option(Path(), help="The folder that the session works in."),
    root: Path = _ROOT,
    *,
    budget: float = typer.Option(None, min=0, help="From here on, the most that it may spend in all, in US dollars."),
    stream: bool = typer.Option(False, "--stream", help="Print the answer while it comes, as on a terminal."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as one JSON object."),
) -> None:
    """Go on with the unfinished prompt of a session. No effect that ended is run again.

    Exit code 0: an answer that was checked; 3: an answer that was not; 1: no answer.
    """
    import asyncio

    from geode.cli.approve import person_here
    from geode.cli.failure import fail
    from geode.cli.mcp_tools import server_tools, tell_of_hooks
    from geode.cli.state import session_folder, settings_of
    from geode.cli.terminal import TurnScreen
    from geode.llm.errors import LLMError
    from geode.loop.turn import TurnResult
    from geode.records.database import RecordError
    from geode.serve.services import SharedServices

    services = SharedServices(settings_of(root))
    folder = session_folder(services.settings.root.sessions, session)
    place = workspace.resolve()
    screen = TurnScreen.of_command(stream=stream, as_json=as_json)

    async def go_on() -> TurnResult:
        tell_of_hooks(services.settings, place)
        async with server_tools(services.settings, place) as extra_tools:
            opened = services.reopen_session(
                folder,
                place,
                approver=person_here(),
                budget_usd=budget,
                on_delta=screen.delta,
                extra_tools=extra_tools,
                observers=(screen.event,),
            )
            try:
                return await opened.aresume()
            finally:
                opened.close()

    try:
        result = asyncio.run(go_on())
    except (LLMError, RecordError, ValueError) as error:
        fail(str(error))
    screen.end(result, folder.name, services.judged(folder.name))
