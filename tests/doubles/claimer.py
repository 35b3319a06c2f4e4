"""Another process that claims names when it is told to: `take 5`, `release 5`, `free 5`, `close`."""

import subprocess
import sys
from pathlib import Path
from typing import Self

from experiments.claims import Name

_PROGRAM = """
import sys
from pathlib import Path
from experiments.claims import Claims, Name
from geode.config.paths import StateRoot
root = StateRoot(Path(sys.argv[1]))
claims = Claims(root)
for line in sys.stdin:
    match line.split():
        case ["take", name]:
            answer = claims.take(Name(int(name)))
        case ["release", name]:
            answer = claims.release(Name(int(name)))
        case ["free", name]:
            answer = claims.is_free(Name(int(name)))
        case _:
            claims.close()
            claims, answer = Claims(root), None
    print(answer, flush=True)
"""


class Claimer:
    """Use it in a `with`."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def take(self, name: Name) -> bool:
        return self._ask(f"take {name}") == "True"

    def release(self, name: Name) -> None:
        self._ask(f"release {name}")

    def is_free(self, name: Name) -> bool:
        return self._ask(f"free {name}") == "True"

    def close(self) -> None:
        self._ask("close")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _ask(self, what: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()
