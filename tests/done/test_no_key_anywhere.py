"""Done line 5: the key of a provider is in nothing that is written or said, whatever the provider answers.

PROVIDERS 10: no key value ever appears in logs, reprs, cassettes or checkpoints (a search over artefacts).
"""

import asyncio
import base64
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from geode.config.settings import read_settings
from geode.dev.fake_provider.script import Failure, HttpReply, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.executor.policy import Mode
from geode.llm.opening import open_adapter
from geode.llm.recorded import RecordingAdapter
from geode.llm.routes import Route
from geode.redaction import Redactor
from geode.serve.default import default_scaffold
from geode.serve.services import SharedServices
from tests.attacks.world import spellings
from tests.done.command import geode

pytestmark = pytest.mark.slow

# None has the look of a key, so that only knowing its value helps.
KEYS = {
    Route.ANTHROPIC: "zx-anthropic-Canary/0123456789+a",
    Route.OPENAI: "zx-openai-Canary/0123456789+b",
    Route.OPENAI_CODEX: "zx-codex-Canary/0123456789+c",
    Route.OPENROUTER: "zx-openrouter-Canary/0123456789+d",
    Route.ZAI: "zx-zai-Canary/0123456789+e",
}
NAMES = {
    Route.ANTHROPIC: ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "anthropic/claude-opus-5-5"),
    Route.OPENAI: ("OPENAI_API_KEY", "OPENAI_BASE_URL", "openai/gpt-6-sol"),
    Route.OPENAI_CODEX: ("OPENAI_CODEX_TOKEN", "OPENAI_BASE_URL", "openai-codex/gpt-6-sol"),
    Route.OPENROUTER: ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "openrouter/anthropic/claude-opus-5.5"),
    Route.ZAI: ("ZAI_API_KEY", "ZAI_BASE_URL", "zai/glm-5.3"),
}
KINDS = {200: "api_error", 400: "invalid_request_error", 401: "authentication_error", 500: "api_error"}
SAYS_MORE = "Traceback of the gateway"


def echo(status: int, key: str, content_type: str = "application/json") -> Step:
    """A reply that gives the key back, as gateways do when they show what they were sent."""
    encoded = base64.b64encode(key.encode()).decode()
    said = f"{SAYS_MORE}: x-api-key {key}, Bearer {key}, {encoded}, {key.encode().hex()}"
    body = json.dumps({"type": "error", "error": {"type": KINDS[status], "code": None, "message": said}})
    headers = {"x-echo": key, "request-id": f"req {key}", "x-request-id": key}
    return Step(failure=HttpReply(status=status, body=body, content_type=content_type, headers=headers))


@pytest.fixture(scope="module")
def double() -> Iterator[FakeProvider]:
    with FakeProvider(keys=KEYS) as running:
        yield running


def reach(double: FakeProvider) -> dict[str, str]:
    """All keys at once, as on a developer's machine."""
    found: dict[str, str] = {}
    for route, (key, base, _) in NAMES.items():
        found |= {key: KEYS[route], base: double.base_url(route)}
    return found


def said_by(home: Path, environment: Mapping[str, str], *arguments: str) -> str:
    ran = geode(home, *arguments, "--root", str(home / "root"), more=environment)
    return f"$ {' '.join(arguments)} -> {ran.code}\n{ran.out}\n{ran.err}"


def everything(home: Path) -> Iterator[tuple[str, bytes]]:
    """Every file byte for byte; what is in a database also as text, since a page or a compression can hide it."""
    for path in sorted(home.rglob("*")):
        if not path.is_file():
            continue
        name, content = str(path.relative_to(home)), path.read_bytes()
        yield name, content
        yield f"{name} (its name)", name.encode()
        if content.startswith(b"SQLite format 3\0"):
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
                yield f"{name} (dumped)", "\n".join(opened.iterdump()).encode()
        elif path.suffix == ".duckdb":
            yield f"{name} (dumped)", dumped(path)


def dumped(path: Path) -> bytes:
    with duckdb.connect(str(path), read_only=True) as opened:
        tables = opened.sql("SELECT table_name FROM duckdb_tables()").fetchall()
        return "\n".join(repr(opened.sql(f'FROM "{table}"').fetchall()) for (table,) in tables).encode()


def found_in(home: Path) -> list[str]:
    needles = {key: spellings(key) for key in KEYS.values()}
    return [
        f"{key} in {name}"
        for name, content in everything(home)
        for key, forms in needles.items()
        if any(form in content for form in forms)
    ]


def record_one(home: Path, double: FakeProvider) -> None:
    """A recording (cassette) of a session that was answered and refused by turns."""
    settings = read_settings(home / "root", reach(double))
    redactor = Redactor.of_environment(dict(settings.environment))
    model = NAMES[Route.ANTHROPIC][2]
    inner = open_adapter(model, settings.environment, redactor=redactor)
    session = SharedServices(settings).create_session(
        mode=Mode.DAEMON,
        scaffold=default_scaffold(),
        model=model,
        workspace=home,
        folder=home / "root" / "sessions" / "recorded",
        adapter=RecordingAdapter(inner, home / "recording.jsonl"),
    )

    async def converse() -> None:
        double.play(Script())
        await session.arun("Which files are in the folder?")
        double.play(Script(steps=(echo(401, KEYS[Route.ANTHROPIC]),)))
        await session.arun("And now?")

    asyncio.run(converse())
    session.close()


def test_no_key_is_in_anything_that_is_written_or_said(tmp_path: Path, double: FakeProvider) -> None:
    """Asked and run, answered, refused and sent again, on every route, by providers that echo the key."""
    environment, said = reach(double), ""
    for route, key in KEYS.items():
        model = NAMES[route][2]
        double.play(Script())
        said += said_by(tmp_path, environment, "ask", "Which files are here?", "--model", model)
        double.play(Script(steps=(echo(500, key), echo(400, key))))
        said += said_by(tmp_path, environment, "ask", "Hello?", "--model", model, "--json")
        assert len(double.requests) == 2, "it was not sent again"
        double.play(Script(steps=(echo(401, key), echo(200, key, "text/html"))))
        said += said_by(tmp_path, environment, "ask", "Hello?", "--model", model)
        said += said_by(tmp_path, environment, "ask", "Hello?", "--model", model)
    sweep = ("run", "experiment=quickstart", "repeats=1", "role/target=anthropic_default")
    key = KEYS[Route.ANTHROPIC]
    double.play(Script(steps=(echo(500, key), echo(401, key), Step(failure=Failure.BAD_KEY)), then=echo(400, key)))
    said += said_by(tmp_path, environment, *sweep)
    double.play(Script())
    said += said_by(tmp_path, environment, *sweep, "invalid=rerun")
    record_one(tmp_path, double)
    (tmp_path / "said.txt").write_text(said, encoding="utf-8")
    assert found_in(tmp_path) == []
    kept = b"".join(content for _, content in everything(tmp_path))
    assert kept.count(SAYS_MORE.encode()) > len(KEYS), "the errors themselves are on record, without the key"
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    written = {"geode.duckdb", "mlflow.db", "spend.db", "session.db", "timeline.jsonl", "episode.json"}
    assert written | {"recording.jsonl", "said.txt"} <= names


def test_the_search_finds_a_key_wherever_it_lies(tmp_path: Path) -> None:
    """Without this the test above would pass on an empty folder, or by a search that looks past what is compressed."""
    key = KEYS[Route.ZAI]
    assert found_in(tmp_path) == []
    (tmp_path / "log.txt").write_text(f"authorization: Bearer {key}\n")
    (tmp_path / "encoded.txt").write_text(base64.b64encode(f"key={key}".encode()).decode())
    with closing(sqlite3.connect(tmp_path / "pages.db")) as opened:
        opened.execute("CREATE TABLE t (text TEXT)")
        opened.execute("INSERT INTO t VALUES (?)", ("x" * 4_050 + key * 3,))
        opened.commit()
    with duckdb.connect(str(tmp_path / "packed.duckdb")) as packed:
        packed.execute("CREATE TABLE t AS SELECT concat('Bearer ', $1, range % 3) AS text FROM range(5000)", [key])
    places = {place.split(" in ", 1)[1] for place in found_in(tmp_path)}
    assert {"log.txt", "encoded.txt", "pages.db (dumped)", "packed.duckdb (dumped)"} <= places
