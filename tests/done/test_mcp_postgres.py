"""Done line 4, with a server that is not ours: postgres-mcp 0.3.0 on a PostgreSQL of Debian's package.

`make mcp-postgres` puts postgres-mcp into an environment of its own under `.cache/`: it needs Python 3.12 and an older
SDK than ours. Where it or PostgreSQL is missing, these tests skip and say so.
"""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.doubles.mcp_house import House, results, server_pid
from tests.doubles.mcp_servers import PROJECT
from tests.doubles.models import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

SERVER = PROJECT / ".cache" / "postgres-mcp" / "bin" / "postgres-mcp"
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A PostgreSQL on a port of loopback, looked at from outside with its own client."""

    binaries: Path
    port: int

    @property
    def uri(self) -> str:
        return f"postgresql://geode@127.0.0.1:{self.port}/postgres"

    def ask(self, sql: str) -> str:
        command = [self.binaries / "psql", self.uri, "-qtAc", sql]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    binaries = BINARIES[-1].parent
    # It refuses to run as root; Debian's package brings a user for it.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    folder = Path(tempfile.mkdtemp(prefix="geode-pg-"))
    shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        init = [binaries / "initdb", "-D", folder / "data", "-A", "trust", "-U", "geode", "--no-sync"]
        subprocess.run(init, user=user, check=True, capture_output=True, timeout=60, cwd="/")
        server = subprocess.Popen(
            [binaries / "postgres", "-D", folder / "data", "-p", str(port), "-h", "127.0.0.1", "-k", folder],
            user=user,
            cwd="/",
            stderr=subprocess.DEVNULL,
        )
        try:
            database = Database(binaries=binaries, port=port)
            deadline = time.monotonic() + 60
            while subprocess.run(
                [binaries / "pg_isready", "-qh", "127.0.0.1", "-p", str(port)], check=False
            ).returncode:
                assert server.poll() is None, "PostgreSQL ended before it was ready"
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield database
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def house(tmp_path: Path, database: Database) -> House:
    if not SERVER.is_file():
        pytest.skip("postgres-mcp 0.3.0 is not installed (make mcp-postgres)")
    database.ask("DROP TABLE IF EXISTS orders; CREATE TABLE orders (id int, total int);")
    database.ask("INSERT INTO orders VALUES (1, 10), (2, 20), (3, 12)")
    server: dict[str, JsonValue] = {
        "transport": "stdio",
        "command": [str(SERVER), "--access-mode=unrestricted"],
        "environment": {"DATABASE_URI": database.uri},
        "tools": {
            "execute_sql": {"level": "write", "data_class": "none", "resources": {"orders": "exclusive"}},
            "list_objects": {"level": "read", "data_class": "none"},
        },
    }
    house = House(tmp_path, {"postgres": server})
    assert "2 tools approved" in house.geode("mcp-servers", "trust", "--yes").out
    return house


async def test_it_is_used_through_the_loop(house: House, database: Database) -> None:
    """The model reads and writes a real database, and the receipt of the write says so."""
    model = ScriptedModel(
        [
            calls(("a", "postgres__list_objects", '{"schema_name": "public"}')),
            calls(("b", "postgres__execute_sql", '{"sql": "SELECT sum(total) AS s FROM orders"}')),
            calls(("c", "postgres__execute_sql", '{"sql": "INSERT INTO orders VALUES (4, 1)"}')),
            calls(("d", "postgres__execute_sql", '{"sql": "SELECT nonsense"}')),
            says("42, and one more."),
        ]
    )
    await house.run(model, "01PG")
    shown = [result.text for asked in model.asked[1:] for result in results(asked)]
    assert "orders" in shown[0]
    assert "42" in shown[1]
    assert "nonsense" in shown[3]
    assert database.ask("SELECT count(*) FROM orders") == "4"
    listed = house.geode("effects", "ls", "01PG", "--all").out
    assert listed.count("succeeded") == 3, "a statement that failed in the database has a known end, too"


async def test_killed_in_mid_call_its_effect_is_uncertain_and_happens_once(house: House, database: Database) -> None:
    """The row is there or not: only a look at the database tells, and nobody sends the statement again."""
    sql = "INSERT INTO orders SELECT 5, 0; COMMIT; SELECT pg_sleep(120)"
    model = ScriptedModel(
        [
            calls(("a", "postgres__execute_sql", f'{{"sql": "{sql}"}}')),
            calls(("b", "postgres__execute_sql", '{"sql": "SELECT count(*) AS n FROM orders"}')),
            says("I do not know."),
        ]
    )
    active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'INSERT INTO orders%'"

    async def kill_in_mid_call() -> None:
        async with asyncio.timeout(60):
            while await asyncio.to_thread(database.ask, active) == "0":  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        os.kill(server_pid(str(SERVER)), signal.SIGKILL)

    await asyncio.gather(house.run(model, "01PGKILL"), kill_in_mid_call())
    (uncertain,) = results(model.asked[1])
    assert uncertain.is_error
    assert "whether it took effect is unknown" in uncertain.text
    assert not results(model.asked[-1])[0].is_error, "the next call has a fresh server"
    listed = house.geode("effects", "ls", "01PGKILL").out
    assert listed.count("uncertain") == 1
    assert "INSERT INTO orders" in listed
    assert int(database.ask("SELECT count(*) FROM orders WHERE id = 5")) <= 1
