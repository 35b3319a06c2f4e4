"""`geode models`: which models there are, what is known of one, and whether the routes work."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from geode.llm.catalog import Entry
    from geode.llm.routes import Route

_ROOT = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode.")
_ROUTE = typer.Option("", "--route", help="The models of this route alone, such as anthropic.")
_JSON = typer.Option(False, "--json", help="Print JSON.")
_REFUSED = 2


def register(app: typer.Typer) -> None:
    """Add `models`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List models, and try the routes to them.")
    group.command("ls", epilog="Example:  geode models ls --route anthropic")(list_models)
    group.command("show", epilog="Example:  geode models show claude-opus-5-5")(show)
    group.command("check", epilog="Example:  geode models check --route openai")(check)
    app.add_typer(group, name="models")


def list_models(route: str = _ROUTE, as_json: bool = _JSON, root: Path = _ROOT) -> None:
    """List the catalogue: ids, routes, limits in tokens, US dollars for a million tokens in and out, keys that are set.

    OpenRouter reaches others as well: name one exactly, as openrouter/maker/model.
    """
    from geode.cli.state import settings_of
    from geode.clock import SystemClock
    from geode.serve.model_list import listed

    environment, today = settings_of(root).environment, SystemClock().now().date()
    models = list(listed(environment, _route(route)))
    if as_json:
        rows = [model.to_json(today) for model in models]
        typer.echo(json.dumps({"schema": "geode.model-list/1", "models": rows}, ensure_ascii=False, indent=1))
        return
    table = [("ID", "ROUTES", "TIER", "WINDOW", "REPLY", "USD IN/OUT", "KEY FOR", "")]
    for model in models:
        entry = model.entry
        remarks = ("decision-only",) * entry.decision_only + ("moving",) * entry.selector
        remarks += (f"until {entry.ends}",) if entry.ends and today <= entry.ends else ()
        remarks += (f"ended {entry.ends}",) if entry.ends and today > entry.ends else ()
        table.append(
            (
                model.name.model_id,
                ",".join(entry.routes),
                entry.tier or "-",
                f"{entry.context_tokens:,}",
                f"{entry.output_tokens_max:,}",
                _price(entry),
                ",".join(name for name in entry.routes if name in model.keys) or "-",
                ", ".join(remarks),
            )
        )
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        typer.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def show(
    model: str = typer.Argument(..., help="The model, as route/id or by its id."),
    as_json: bool = _JSON,
    root: Path = _ROOT,
) -> None:
    """Show what is known of a model: its routes and their keys, limits, manners and prices."""
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.clock import SystemClock
    from geode.llm.credentials import ACCESS
    from geode.llm.errors import ConfigurationError
    from geode.serve.model_list import look_up

    try:
        found = look_up(model, settings_of(root).environment)
    except ConfigurationError as error:
        fail(str(error), _REFUSED)
    if as_json:
        body = found.to_json(SystemClock().now().date())
        typer.echo(json.dumps({"schema": "geode.model/1", **body}, ensure_ascii=False, indent=1))
        return
    entry = found.entry
    for name in entry.names:
        held = "is set" if name.route in found.keys else "is not set"
        typer.echo(f"{name}  ({ACCESS[name.route].variable} {held})")
    lines = {
        "window": f"{entry.context_tokens:,} tokens, of which a reply may have {entry.output_tokens_max:,}",
        "effort": ", ".join(entry.efforts) or "none is taken",
        "temperature": entry.sampling.replace("_", " "),
        "tier": entry.tier,
        "served until": entry.ends,
        "prices": _prices(entry),
        "": "decision-only: a judge, never the model of a session" if entry.decision_only else None,
    }
    for about, text in lines.items():
        if text is not None:
            typer.echo(f"{about:14}{text}")


def check(
    models: list[str] = typer.Argument(
        None, help="Models as route/id; by default a cheap one of each route with a key."
    ),
    *,
    route: str = _ROUTE,
    as_json: bool = _JSON,
    root: Path = _ROOT,
) -> None:
    """Ask each model for one word, which costs a little, and say what came of it. Exit code 1 if one fails."""
    import asyncio

    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.clock import SystemClock
    from geode.executor.policy import Mode
    from geode.records.purse import Account
    from geode.redaction import Redactor
    from geode.serve.accounts import Accounts
    from geode.serve.model_check import Checked, check_model, models_to_check

    settings, clock = settings_of(root), SystemClock()
    environment, chosen = settings.environment, _route(route)
    names = models or models_to_check(environment, chosen, clock.now().date())
    if not names and chosen:
        fail(f"{chosen} has no model that answers in text, only judges", _REFUSED)
    if not names:
        fail("no key of a route is set; geode models ls --json names the variables", _REFUSED)
    # What a check costs counts, and keeps within the caps, like all other spending.
    accounts, redactor = Accounts(settings.root, clock), Redactor.of_environment(dict(environment))

    async def check_all() -> list[Checked]:
        purses = [accounts.purse(Account(role="check"), clock.ulid(), Mode.REPL) for _ in names]
        return [
            await check_model(name, environment, purse, redactor) for name, purse in zip(names, purses, strict=True)
        ]

    found = asyncio.run(check_all())
    if as_json:
        rows = [one.to_json() for one in found]
        typer.echo(json.dumps({"schema": "geode.model-check/1", "checks": rows}, ensure_ascii=False, indent=1))
    else:
        for one in found:
            typer.echo(f"{'failed' if one.problem else 'ok':8}{one.text}")
    raise typer.Exit(int(any(one.problem for one in found)))


def _route(text: str) -> "Route | None":
    """Return the route that is named, if one is, or end the command."""
    from geode.cli.failure import fail
    from geode.llm.credentials import ACCESS
    from geode.llm.routes import Route

    if text and text not in {route.value for route in ACCESS}:
        fail(f"--route is {text!r}; there are {', '.join(ACCESS)}", _REFUSED)
    return Route(text) if text else None


def _price(entry: "Entry") -> str:
    return f"{entry.prices.input:g}/{entry.prices.output:g}" if entry.prices else "unknown"


def _prices(entry: "Entry") -> str:
    prices = entry.prices
    if prices is None:
        return f"unknown: {entry.no_prices}"
    classes = {
        "input": prices.input,
        "cache read": prices.cache_read,
        "cache write": prices.cache_write,
        "for an hour": prices.cache_write_1h,
        "output": prices.output,
    }
    text = ", ".join(f"{name} {price:g}" for name, price in classes.items() if price is not None)
    text = f"US dollars for a million tokens: {text}; as of {prices.as_of}, {prices.source}"
    if (long := prices.long) is not None:
        dearer = f"input {long.input_factor:g} and output {long.output_factor:g} times as dear"
        text += f"; above {long.above_input_tokens:,} input tokens {dearer}"
    return text
