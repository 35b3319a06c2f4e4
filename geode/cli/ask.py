"""`geode ask`: one turn, for scripts and for people."""

import sys
from pathlib import Path

import typer

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
    effort: str = typer.Option("", help="How much the model may think; by default as its provider says."),
    max_output_tokens: int = typer.Option(None, min=1, help="How long one reply may be, thinking included."),
    budget: float = typer.Option(None, min=0, help="The most that the session may spend on models, in US dollars."),
    judge: str = typer.Option("", help="Who judges whether an answer may end it: a model as route/id, or jev, rules."),
    stream: bool = typer.Option(False, "--stream", help="Print the answer while it comes, as on a terminal."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as one JSON object."),
    display: str = typer.Option("", help="The X display whose screen the agent may use, as :1; by default none."),
) -> None:
    """Answer one prompt with the tools of a folder.

    On a terminal, calls that change something ask you first; elsewhere they are refused. Exit code 0: an answer
    that was checked; 3: an answer that was not; 1: no answer.
    """
    import asyncio

    from geode.cli.approve import person_here
    from geode.cli.failure import fail
    from geode.cli.mcp_tools import server_tools, tell_of_hooks
    from geode.cli.screen import with_screen
    from geode.cli.state import settings_of
    from geode.cli.terminal import TurnScreen, model_options
    from geode.executor.policy import Mode
    from geode.llm.errors import LLMError
    from geode.loop.turn import TurnResult
    from geode.records.database import RecordError
    from geode.records.purse import Account
    from geode.redaction import clean_text
    from geode.scaffold import Scaffold
    from geode.serve.completion import completion_offer
    from geode.serve.default import default_scaffold
    from geode.serve.services import SharedServices

    # A process can be started without standard streams; Python then has None in their place.
    text = clean_text((sys.stdin.read() if sys.stdin else "") if prompt == "-" else prompt)
    if not text.strip():
        fail("the prompt is empty; say what you want done", 2)
    if not workspace.is_dir():
        fail(f"the workspace {str(workspace)!r} is no folder; name one with --workspace", 2)
    options = model_options(effort=effort, max_output_tokens=max_output_tokens)
    person, screen = person_here(), TurnScreen.of_command(stream=stream, as_json=as_json)
    services = SharedServices(settings_of(root))
    folder = services.settings.root.sessions / services.clock.ulid()
    place = workspace.resolve()

    async def answer(scaffold: Scaffold) -> TurnResult:
        tell_of_hooks(services.settings, place)
        async with server_tools(services.settings, place) as of_servers:
            extra_tools = with_screen(of_servers, display, place)
            session = services.create_session(
                mode=Mode.REPL if person else Mode.DAEMON,
                scaffold=scaffold,
                model=model,
                workspace=place,
                folder=folder,
                simulation_key=f"ask/{text}",
                options=options,
                account=Account(session_usd=budget),
                approver=person,
                on_delta=screen.delta,
                extra_tools=extra_tools,
                observers=(screen.event,),
            )
            try:
                return await session.arun(text)
            finally:
                session.close()

    try:
        scaffold = default_scaffold(completion_offer().check(judge) if judge else None)
        result = asyncio.run(answer(scaffold))
    except (LLMError, RecordError, ValueError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail(f"interrupted; go on with: geode sessions resume {folder.name}", 130)
    screen.end(result, folder.name, services.judged(folder.name))
