"""`geode effects`: effects whose end nobody knows, and the operator's word on them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from geode.records.receipts import EffectReceipt

_REFUSED = 2
_SHOWN_CHARS = 100

_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")
_SESSION = typer.Argument(..., help="The session, or the beginning of its name; last is the newest.")
_EFFECT = typer.Argument(..., help="The effect as `geode effects ls` names it: ROUND/CALL.")


def register(app: typer.Typer) -> None:
    """Add `effects`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at effects whose end is unknown.")
    group.command("ls", epilog="Example:  geode effects ls")(list_effects)
    group.command("show", epilog="Example:  geode effects show 01JZ 3/call_1")(show_effect)
    group.command(
        "settle", epilog="Example:  geode effects settle 01JZ 3/call_1 succeeded --why 'the mail is in the outbox'"
    )(settle_effect)
    app.add_typer(group, name="effects")


def list_effects(
    session: str = typer.Argument("", help="A session, the beginning of its name, or last; by default all of them."),
    everything: bool = typer.Option(False, "--all", help="Also the effects whose end is known."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    root: Path = _ROOT,
) -> None:
    """List the effects that are uncertain: they began, and nobody saved how they ended."""
    from geode.records.receipts import ReceiptState

    code, found = 0, []
    for name, receipts in _of_sessions(session, root):
        if isinstance(receipts, str):
            code = 1
            typer.echo(f"geode: {receipts}", err=True)
            continue
        found += [(name, r) for r in receipts if everything or r.state is ReceiptState.UNCERTAIN]
    if as_json:
        rows = [{"session": name, **_as_json(receipt)} for name, receipt in found]
        typer.echo(json.dumps({"schema": "geode.effects/1", "effects": rows}, ensure_ascii=False, indent=1))
        raise typer.Exit(code)
    for name, receipt in found:
        arguments = receipt.arguments
        shown = arguments if len(arguments) <= _SHOWN_CHARS else f"{arguments[:_SHOWN_CHARS]}..."
        typer.echo(f"{name}  {receipt.key}  {receipt.tool}  {receipt.state}  {shown}  {receipt.note}".rstrip())
    if not found and not code:
        typer.echo("no effect" if everything else "no uncertain effect", err=True)
    raise typer.Exit(code)


def show_effect(session: str = _SESSION, effect: str = _EFFECT, root: Path = _ROOT) -> None:
    """Show all that is known of one effect."""
    from geode.cli.failure import fail
    from geode.clock import SystemClock
    from geode.records.database import RecordError
    from geode.records.folder import SessionFolder
    from geode.serve.recovery import find_effect, read_effects

    try:
        receipt = find_effect(read_effects(SessionFolder(_folder(session, root)), SystemClock()), effect)
    except RecordError as error:
        fail(str(error), _REFUSED)
    for key, value in _as_json(receipt).items():
        typer.echo(f"{key:15}{value}")


def settle_effect(
    session: str = _SESSION,
    effect: str = _EFFECT,
    end: str = typer.Argument(..., help="succeeded, failed (it had no effect) or not_started."),
    why: str = typer.Option(..., "--why", help="How you know; it is kept with the receipt."),
    root: Path = _ROOT,
) -> None:
    """Say how an uncertain effect ended, after a look at the world. The receipt and the timeline keep who said why."""
    from geode.cli.failure import fail
    from geode.clock import SystemClock
    from geode.records.database import RecordError
    from geode.records.folder import SessionFolder
    from geode.records.receipts import SETTLED, ReceiptState
    from geode.redaction import clean_text
    from geode.serve.recovery import settle_by_operator

    if end not in {known.value for known in SETTLED}:
        fail(f"{end!r} is no end of an effect; it is one of {', '.join(SETTLED)}", _REFUSED)
    if not why.strip():
        fail("--why is empty; say how you know, since nobody else can", _REFUSED)
    folder = SessionFolder(_folder(session, root))
    try:
        receipt = settle_by_operator(folder, effect, ReceiptState(end), clean_text(why.strip()), SystemClock())
    except RecordError as error:
        fail(str(error), _REFUSED)
    typer.echo(f"{receipt.key} of {folder.path.name} is settled: {receipt.state}, by {receipt.settled_by}")


def _folder(session: str, root: Path | None) -> Path:
    from geode.cli.state import session_folder, settings_of

    return session_folder(settings_of(root).root.sessions, session)


def _of_sessions(session: str, root: Path | None) -> Iterator[tuple[str, "Sequence[EffectReceipt] | str"]]:
    """Yield each session's receipts by its name, or why they cannot be read: one that runs is closed to others."""
    from geode.cli.state import settings_of
    from geode.clock import SystemClock
    from geode.records.database import RecordError
    from geode.records.folder import SessionFolder
    from geode.serve.recovery import read_effects

    sessions = settings_of(root).root.sessions
    if session:
        folders = [_folder(session, root)]
    else:
        found = sorted(entry for entry in sessions.iterdir() if entry.is_dir()) if sessions.is_dir() else []
        folders = [entry for entry in found if SessionFolder(entry).state.exists()]  # the others never began
    for folder in folders:
        try:
            yield folder.name, read_effects(SessionFolder(folder), SystemClock())
        except RecordError as error:
            yield folder.name, str(error)


def _as_json(receipt: "EffectReceipt") -> dict[str, str | None]:
    return {
        "effect": str(receipt.key),
        "tool": receipt.tool,
        "state": receipt.state.value,
        "arguments": receipt.arguments,
        "arguments_hash": receipt.arguments_hash,
        "admitted_at": receipt.admitted_at,
        "ended_at": receipt.ended_at,
        "note": receipt.note,
        "settled_by": receipt.settled_by,
    }
