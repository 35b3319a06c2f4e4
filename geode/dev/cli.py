"""`geode dev`: the first version of a suite or a hook of one's own, and a provider to try a configuration on."""

from pathlib import Path

import typer

_NAME = typer.Argument(..., help="Lower-case letters, digits and _; also the name of the new folder.")
_PORT = typer.Option(0, "--port", min=0, max=65535, help="The port on 127.0.0.1; 0 takes any that is free.")
_SCRIPT = typer.Option(
    None, "--script", help="A YAML or JSON file that says what to answer; without it a small agent does.", exists=True
)
_LATENCY = typer.Option(0, "--latency-ms", min=0, help="How long each reply takes to begin, in milliseconds.")
_IN = typer.Option(Path(), "--in", help="The folder to write it into.")


def register(app: typer.Typer) -> None:
    """Add `dev`, for those who build on GEODE."""
    dev = typer.Typer(no_args_is_help=True, help="Build on GEODE: geode dev new suite my_suite.")
    new = typer.Typer(no_args_is_help=True, help="Write the first version of something of your own.")
    new.command("suite", epilog="Example:  geode dev new suite my_suite")(new_suite)
    new.command("hook", epilog="Example:  geode dev new hook my_hook")(new_hook)
    dev.add_typer(new, name="new")
    dev.command("fake-provider", epilog="Example:  geode dev fake-provider --port 8787")(fake_provider)
    app.add_typer(dev, name="dev")


def new_suite(name: str = _NAME, parent: Path = _IN) -> None:
    """Write a suite with a first task that can be checked and run as it is."""
    folder = _written("suite", name, parent)
    typer.echo(
        f"wrote {folder}; first_task in it is an example to be changed; copy it for the next one, and change the id\n"
        f"  geode suite check {folder}\n"
        f"  geode sweep suite={_as_path(folder)} 'hooks=[],[require_test_run]' repeats=20 name={name}\n"
        f"  geode compare {name}"
    )


def new_hook(name: str = _NAME, parent: Path = _IN) -> None:
    """Write a package with one hook, its options and its tests."""
    import sys

    folder = _written("hook", name, parent)
    typer.echo(
        f"wrote {folder}; the hook in it is an example to be changed\n"
        f"  {sys.executable} -m pip install -e {_as_path(folder)}\n"
        f"  {sys.executable} -m pytest {folder}\n"
        f"  geode sweep 'hooks=[],[{name}]' repeats=20 name={name}\n"
        f"  geode compare {name}"
    )


def fake_provider(port: int = _PORT, script: Path | None = _SCRIPT, latency_ms: int = _LATENCY) -> None:
    """Speak as every provider on this machine, without a model, until Ctrl-C. It refuses what the real ones refuse."""
    import dataclasses
    import threading
    from contextlib import suppress

    from geode.dev.fake_provider.console import exports, request_line
    from geode.dev.fake_provider.script import Script
    from geode.dev.fake_provider.script_file import ScriptInvalid, read_script
    from geode.dev.fake_provider.server import FakeProvider, PortUnavailable

    try:
        played = read_script(script) if script else Script()
        if latency_ms:
            played = dataclasses.replace(played, latency_ms=latency_ms)
        with FakeProvider(played, port=port, on_request=lambda request: typer.echo(request_line(request))) as double:
            typer.echo("# In another terminal:")
            for line in exports(double):
                typer.echo(line)
            typer.echo(f"# Serving on {double.url}, on this machine only. Ctrl-C ends it.")
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
    except (ScriptInvalid, PortUnavailable) as fault:
        typer.echo(f"geode: {fault}", err=True)
        raise typer.Exit(1) from fault


def _written(kind: str, name: str, parent: Path) -> Path:
    from geode.dev.skeleton import SkeletonKind, SkeletonRefused, write_skeleton

    try:
        return write_skeleton(SkeletonKind(kind), name, parent)
    except SkeletonRefused as refusal:
        message = str(refusal)
    except OSError as failure:
        message = f"{failure.filename or parent}: {failure.strerror or failure}; give another folder with --in"
    typer.echo(f"geode: {message}", err=True)
    raise typer.Exit(1)


def _as_path(folder: Path) -> str:
    """Return the path with a separator in it, which is what tells a folder from a name."""
    return str(folder) if folder.is_absolute() or len(folder.parts) > 1 else f"./{folder}"
