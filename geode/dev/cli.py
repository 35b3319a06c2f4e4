"""`geode dev new`: the first version of a suite or a hook of one's own."""

from pathlib import Path

import typer

_NAME = typer.Argument(..., help="Lower-case letters, digits and _; also the name of the new folder.")
_IN = typer.Option(Path(), "--in", help="The folder to write it into.")


def register(app: typer.Typer) -> None:
    """Add `dev`, for those who build on GEODE."""
    dev = typer.Typer(no_args_is_help=True, help="Build on GEODE: geode dev new suite my_suite.")
    new = typer.Typer(no_args_is_help=True, help="Write the first version of something of your own.")
    new.command("suite", epilog="Example:  geode dev new suite my_suite")(new_suite)
    new.command("hook", epilog="Example:  geode dev new hook my_hook")(new_hook)
    dev.add_typer(new, name="new")
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
