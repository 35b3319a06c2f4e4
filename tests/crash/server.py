"""The MCP server of the script, of the standard library alone: it keeps a log of its own of what it did.

Run it as a program: `python -I -S server.py FOLDER`. Between an effect and its answer it waits until somebody opens
`FOLDER/held` and lets it go, so that a session can be broken while its call is under way.
"""

import json
import os
import select
import sys
from pathlib import Path
from typing import Any

SERVER = "notary"
TOOL = "record"
LOG = "served.log"
HELD = "held"
_SCHEMA = {
    "type": "object",
    "properties": {"mark": {"type": "string"}},
    "required": ["mark"],
    "additionalProperties": False,
}


def main(folder: Path) -> None:
    """Serve the handshake of 2025-11-25 until the input ends."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        match request["method"]:
            case "initialize":
                answer["result"] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": SERVER, "version": "1"},
                }
            case "tools/list":
                tool = {"name": TOOL, "description": "Record a mark for good.", "inputSchema": _SCHEMA}
                answer["result"] = {"tools": [tool]}
            case "tools/call":
                mark = request["params"]["arguments"]["mark"]
                record(folder, mark)
                answer["result"] = {"content": [{"type": "text", "text": f"recorded {mark}"}]}
            case _:
                answer["error"] = {"code": -32601, "message": "Method not found"}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


def record(folder: Path, mark: str) -> None:
    """Do the effect, then wait to be let go, or for the end of whoever asked."""
    with (folder / LOG).open("ab", buffering=0) as log:
        log.write(f"{mark}\n".encode())
    held = os.open(folder / HELD, os.O_RDONLY | os.O_NONBLOCK)
    # Whoever asked has nothing else to say meanwhile, so that input which is ready is input that has ended.
    select.select([held, sys.stdin.buffer], [], [])
    os.close(held)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
