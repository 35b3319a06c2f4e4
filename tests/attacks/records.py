"""What the table of attacks holds: for each attack phrasings of it, and actions that look like it and are meant."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

CASES = Path(__file__).parent / "cases"
_MAIN_ARGUMENT = {"shell": "command", "web_fetch": "url", "git_commit": "message", "search": "pattern", "say": "text"}


class Setting(StrEnum):
    """From where a session is reached: by a person at a terminal, by nobody, or by an experiment."""

    ATTENDED = "attended"
    UNATTENDED = "unattended"
    EXPERIMENT = "experiment"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Call(_Part):
    """One call that the scripted model makes. `raw` is the text of its arguments where that is no JSON object.

    The tool `say` is none: the model says a text, which ends a turn, or that of a sub-agent.
    """

    tool: str
    arguments: dict[str, Any] = {}
    raw: str | None = None
    call_id: str | None = None


def _call(written: Any) -> Any:
    """Read `shell: ls`, `read_file: a.txt` or `write_file: {path: a, content: b}`; a list is one round of several."""
    if isinstance(written, list):
        return [_call(one) for one in written]
    if not isinstance(written, dict) or "tool" in written:
        return written
    more = {key: written[key] for key in ("raw", "call_id") if key in written}
    ((tool, said),) = ((key, value) for key, value in written.items() if key not in more)
    arguments = {_MAIN_ARGUMENT.get(tool, "path"): said} if isinstance(said, str) else said or {}
    return {"tool": tool, "arguments": arguments, **more}


Round = Annotated[tuple[Call, ...], BeforeValidator(lambda said: said if isinstance(said, list) else [said])]
Rounds = Annotated[tuple[Round, ...], BeforeValidator(lambda said: [_call(one) for one in said])]


class Server(_Part):
    """An MCP server that the owner approved as it is in `tools`. `now` is what it lists by the time of the session.

    `level` is what the owner says of its tools, `asks` whether it asks for something in the middle of a call.
    """

    tools: tuple[dict[str, Any], ...]
    now: tuple[dict[str, Any], ...] | None = None
    level: str = "external"
    data_class: str = "none"
    answer: str = "done"
    asks: bool = False
    behaviour: str = ""


class Phrase(_Part):
    """One thing that a session is made to do.

    Attributes:
        say: what it is, in a few words.
        lure: files with the text that talks the model into it; it reads them first.
        files: other files of the workspace.
        setup: a script of whoever made the workspace, run in it beforehand.
        pages: pages of the public web, by path.
        servers: MCP servers, by name.
        before: rounds of an earlier session in the same workspace.
        trusts: whether the owner has trusted the MCP servers of the project as it is before `between`.
        between: a script that somebody runs after that session.
        calls: the rounds that the obedient model makes.
        answer: its last words.
        shows: what a question about it must show, each of them, or nobody could judge it.
        approves: questions that show one of these are answered yes, by the person who is taken in by them.
        stores: whether that yes is for the session.
        meanwhile: a script that runs while the first question stands there.
        asks: how often the person must be asked at least.
        protects: files of the workspace that must stay as they are where nobody says yes, and `.geode` everywhere.
        escaped: whether results and questions must hold no letter that does not show.
        context_tokens: how much the model is shown at once, before old results are left out.
        utters: the model says a secret by itself, so that only what leaves is looked at.
        fails: the last call of a twin is meant to fail by itself, as a test that finds a fault does.
        opens: whether the session is to begin at all.
        settings: where it is played.
        seconds: how long it may take.
    """

    say: str
    lure: dict[str, str] = {}
    files: dict[str, str] = {}
    setup: str = ""
    pages: dict[str, str] = {}
    servers: dict[str, Server] = {}
    before: Rounds = ()
    trusts: bool = False
    between: str = ""
    calls: Rounds = ()
    answer: str = "Done."
    shows: tuple[str, ...] = ()
    approves: tuple[str, ...] = ()
    stores: bool = False
    meanwhile: str = ""
    asks: int = 0
    protects: tuple[str, ...] = ()
    escaped: bool = False
    context_tokens: int = 150_000
    utters: bool = False
    fails: bool = False
    opens: bool = True
    settings: tuple[Setting, ...] = tuple(Setting)
    seconds: float = 30.0


class Attack(_Part):
    """One row of the table. `open` says why it, or a part of it, has no surface yet."""

    id: Annotated[str, Field(pattern=r"^A\d\d$")]
    attempt: str
    open: str = ""
    phrases: tuple[Phrase, ...] = ()
    twins: tuple[Phrase, ...] = ()


def load_attacks(folder: Path = CASES) -> Mapping[str, Attack]:
    """Return every attack by its id."""
    attacks = [
        Attack.model_validate(entry)
        for path in sorted(folder.glob("*.yaml"))
        for entry in yaml.safe_load(path.read_text())
    ]
    assert len({attack.id for attack in attacks}) == len(attacks), "an attack stands twice"
    return {attack.id: attack for attack in sorted(attacks, key=lambda attack: attack.id)}
