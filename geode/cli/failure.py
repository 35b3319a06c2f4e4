"""How a command fails: one message on standard error, one exit code, no traceback."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from geode.config.settings import BadSettings

INTERRUPTED = 130
_REFUSED = 2


class Commands(TyperGroup):
    """All commands. What may go wrong in any of them, a disk, an output or an interrupt, is told here, once."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader has seen enough, as in `geode ls | head`; Typer ends without a word
        except OSError as error:
            _give_up_output_that_fails()
            fail(disk_failure(error))
        except BadSettings as error:
            fail(str(error), _REFUSED)
        except KeyboardInterrupt:
            fail("interrupted; what was stored before is kept", INTERRUPTED)


def fail(message: str, code: int = 1) -> NoReturn:
    """End the command with `message` and `code`."""
    typer.echo(f"geode: {message}", err=True)
    raise typer.Exit(code)


def _give_up_output_that_fails() -> None:
    """Keep Python from failing once more, in words of its own, on what is still buffered when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError), Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def disk_failure(error: OSError) -> str:
    """Say which place failed, and what to do."""
    what = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {what}; repair it or name another place, then run the same command again"
    if isinstance(error, FileNotFoundError):
        return "the working folder does not exist any more; change into one that does"
    # Writing to a file that is already open fails without its name.
    return f"writing failed: {what}; make room where the output or the state root lies, then run the same command again"
