"""What a person at a terminal sees and decides."""

import asyncio
import sys
from dataclasses import asdict

import typer
from pydantic import JsonValue

from geode.executor.approval import ApprovalRequest
from geode.loop.turn import TurnResult

_SHOWN_CHARS = 2_000


class TerminalApprover:
    """Asks the person at the terminal. Anything but `y` is a no."""

    async def approve(self, request: ApprovalRequest) -> bool:
        """See `geode.executor.approval.Approver`."""
        # ascii(): no control sequence, look-alike letter or direction mark of the model's can change what is shown.
        shown = ascii(request.arguments)[1:-1]
        if len(shown) > _SHOWN_CHARS:
            shown = f"{shown[:_SHOWN_CHARS]} ... [{len(shown) - _SHOWN_CHARS} more characters]"
        typer.echo(f"\n{request.tool} ({request.level.name.lower()}): {shown}", err=True)
        typer.echo(f"sha256 {request.arguments_hash[:16]}; {request.reason}", err=True)
        typer.echo("Allow this call? [y/N] ", nl=False, err=True)
        answer: str = await asyncio.to_thread(sys.stdin.readline)
        return answer.strip().lower() == "y"


def result_to_json(result: TurnResult) -> dict[str, JsonValue]:
    """Return a turn's result as JSON values."""
    return {**asdict(result), "stop": result.stop.value}
