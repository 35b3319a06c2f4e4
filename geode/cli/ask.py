"""`geode ask`: one turn, for scripts and for people."""

import sys
from pathlib import Path

import typer

EXIT_NOT_VERIFIED = 3
_EXAMPLE = 'Example:  geode ask "What is in this folder?" --model simulated/apprentice'


def register(app: typer.Typer) -> None:
    """Add `ask`."""
    app.command(epilog=_EXAMPLE)(ask)


def ask(
    prompt: str = typer.Argument(..., help="What you want done; - reads it from standard input."),
    *,
    model: str = typer.Option("simulated/apprentice", help="The model, as route/id."),
    workspace: Path = typer.Option(Path(), help="The folder that the agent works in; it knows it as /workspace."),
    root: Path = typer.Option(None, help="The state root; by default GEODE_HOME, or ~/.geode."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as one JSON object."),
    display: str = typer.Option("", help="The X display whose screen the agent may use, as :1; by default none."),
) -> None:
    """Answer one prompt with the tools of a folder.

    On a terminal, calls that change something ask you first; elsewhere they are refused. Exit code 0: an answer
    that was checked; 3: an answer that was not; 1: no answer.
    """
    import asyncio
    import json

    from geode.cli.approve import person_here
    from geode.cli.failure import fail
    from geode.cli.mcp_tools import server_tools, tell_of_hooks
    from geode.cli.screen import with_screen
    from geode.cli.state import settings_of
    from geode.cli.terminal import result_to_json
    from geode.executor.policy import Mode
    from geode.llm.errors import LLMError
    from geode.llm.usage import shown_usd
    from geode.loop.turn import TurnResult
    from geode.records.database import RecordError
    from geode.redaction import clean_text
    from geode.serve.default import default_scaffold
    from geode.serve.services import SharedServices

    # A process can be started without standard streams; Python then has None in their place.
    text = clean_text((sys.stdin.read() if sys.stdin else "") if prompt == "-" else prompt)
    if not text.strip():
        fail("the prompt is empty; say what you want done", 2)
    if not workspace.is_dir():
        fail(f"the workspace {str(workspace)!r} is no folder; name one with --workspace", 2)
    person = person_here()
    services = SharedServices(settings_of(root))
    folder = services.settings.root.sessions / services.clock.ulid()
    place = workspace.resolve()

    async def answer() -> TurnResult:
        tell_of_hooks(services.settings, place)
        async with server_tools(services.settings, place) as of_servers:
            extra_tools = with_screen(of_servers, display, place)
            session = services.create_session(
                mode=Mode.REPL if person else Mode.DAEMON,
                scaffold=default_scaffold(),
                model=model,
                workspace=place,
                folder=folder,
                simulation_key=f"ask/{text}",
                approver=person,
                extra_tools=extra_tools,
            )
            try:
                return await session.arun(text)
            finally:
                session.close()

    try:
        result = asyncio.run(answer())
    except (LLMError, RecordError, ValueError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail(f"interrupted; go on with: geode sessions resume {folder.name}", 130)
    if as_json:
        typer.echo(json.dumps({"session": folder.name, **result_to_json(result)}, ensure_ascii=False))
    else:
        typer.echo(result.text or f"No answer: {result.detail}")
        note = "simulated, " if result.simulated else ""
        typer.echo(
            f"[{note}{result.stop}, {result.rounds} rounds, {result.usage.total_tokens} tokens,"
            f" {shown_usd(result.usage.cost_usd)}, session {folder.name}]",
            err=True,
        )
    if not result.verified:
        raise typer.Exit(EXIT_NOT_VERIFIED if result.text else 1)
