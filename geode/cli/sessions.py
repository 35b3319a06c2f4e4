"""`geode sessions`: what was, and going on with what a dead process left."""

from pathlib import Path

import typer

_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")


def register(app: typer.Typer) -> None:
    """Add `sessions`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List sessions, and resume one.")
    group.command("ls", epilog="Example:  geode sessions ls")(list_sessions)
    group.command("resume", epilog="Example:  geode sessions resume 01JZ --workspace .")(resume)
    app.add_typer(group, name="sessions")


def list_sessions(root: Path = _ROOT) -> None:
    """List the sessions of the state root, newest last."""
    from geode.config.settings import read_settings
    from geode.records.folder import SessionFolder

    sessions = read_settings(root).root.sessions
    for folder in sorted(sessions.iterdir()) if sessions.is_dir() else ():
        try:
            state = SessionFolder(folder).read_state()
        except (OSError, ValueError) as error:
            typer.echo(f"{folder.name}  unreadable ({error})", err=True)
            continue
        typer.echo(f"{folder.name}  {state.get('status')}  {state.get('model')}  {state.get('updated_at')}")


def resume(
    session: str = typer.Argument(..., help="The session, or the beginning of its name."),
    workspace: Path = typer.Option(Path(), help="The folder that the session works in."),
    root: Path = _ROOT,
) -> None:
    """Go on with the unfinished prompt of a session. No effect that ended is run again."""
    import asyncio

    from geode.cli.failure import fail
    from geode.config.settings import read_settings
    from geode.llm.errors import LLMError
    from geode.records.database import RecordError
    from geode.serve.services import SharedServices

    services = SharedServices(read_settings(root))
    sessions = services.settings.root.sessions
    found = sorted(sessions.glob(f"{session}*")) if sessions.is_dir() and session.isalnum() else []
    if len(found) != 1:
        fail(f"{len(found)} sessions begin with {session!r}; geode sessions ls names them", 2)
    try:
        opened = services.reopen_session(found[0], workspace.resolve())
        try:
            result = asyncio.run(opened.aresume())
        finally:
            opened.close()
    except (LLMError, RecordError, ValueError, OSError) as error:
        fail(str(error))
    typer.echo(result.text or f"No answer: {result.detail}")
