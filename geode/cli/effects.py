"""`geode effects`: effects whose end nobody knows."""

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    """Add `effects`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at effects whose end is unknown.")
    group.callback()(lambda: None)
    group.command("ls", epilog="Example:  geode effects ls 01JZ")(list_effects)
    app.add_typer(group, name="effects")


def list_effects(
    session: str = typer.Argument(..., help="The session, or the beginning of its name."),
    everything: bool = typer.Option(False, "--all", help="Also the effects whose end is known."),
    root: Path = typer.Option(None, help="The state root; by default GEODE_HOME, or ~/.geode."),
) -> None:
    """List the effects of a session that are uncertain: they began, and nobody saved how they ended."""
    from geode.cli.failure import fail
    from geode.cli.state import session_folder, settings_of
    from geode.clock import SystemClock
    from geode.records.database import RecordError
    from geode.records.folder import SessionFolder
    from geode.records.receipts import EffectReceiptStore, ReceiptState

    path = SessionFolder(session_folder(settings_of(root).root.sessions, session)).receipts
    if not path.is_file():
        fail(f"{path} is gone, so nobody knows what this session did; restore it from a copy")
    try:
        store = EffectReceiptStore.open(path, SystemClock())
    except RecordError as error:
        fail(str(error))
    receipts = store.all() if everything else store.all(ReceiptState.UNCERTAIN)
    store.close()
    for receipt in receipts:
        typer.echo(
            f"round {receipt.key.round}  {receipt.key.call_id}  {receipt.tool}  {receipt.state}  {receipt.arguments}"
            f"  {receipt.note}"
        )
    if not receipts:
        typer.echo("no uncertain effect" if not everything else "no effect", err=True)
