"""What the owner has looked at and approved: files of projects (MCP settings, hooks), and tools of MCP servers.

Approval is of content: a file or a tool that changes by one byte is a stranger again.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class TrustUnreadable(ValueError):  # noqa: N818  (it names what is wrong)
    """The record of what was approved cannot be read, so that nothing counts as approved."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ApprovedTool(_Part):
    """A tool as it was approved. The texts are kept so that a change can be shown, not only noticed."""

    fingerprint: str
    description: str
    input_schema: str


class _Approvals(_Part):
    schema_: Literal["geode.mcp_trust/1"] = Field(default="geode.mcp_trust/1", alias="schema")
    files: dict[str, str] = {}
    tools: dict[str, dict[str, ApprovedTool]] = {}


class TrustStore:
    """The approvals of one state root, in one file. Only a person's command writes it.

    Raises:
        TrustUnreadable: if the file is damaged or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._approvals = _Approvals.model_validate_json(path.read_bytes()) if path.exists() else _Approvals()
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise TrustUnreadable(
                f"{path} cannot be read ({place}: {first['msg']}); remove it, and approve anew with:"
                " geode mcp-servers trust, geode hooks trust"
            ) from error

    def trusted_file(self, path: Path) -> str | None:
        """The digest of the file at `path` when it was trusted, or None if it never was."""
        return self._approvals.files.get(str(path))

    def trust_file(self, path: Path, digest: str) -> None:
        """Trust the file at `path` as long as it has this digest."""
        self._write(files={**self._approvals.files, str(path): digest})

    def forget_file(self, path: Path) -> None:
        """Trust the file at `path` no longer, as if it never had been."""
        self._write(files={known: digest for known, digest in self._approvals.files.items() if known != str(path)})

    def approved(self, server: str, tool: str) -> ApprovedTool | None:
        """The tool as it was approved; `server` is the server's key."""
        return self._approvals.tools.get(server, {}).get(tool)

    def approve(self, server: str, tools: Mapping[str, ApprovedTool]) -> None:
        """Approve these tools of a server; others of it keep their approval."""
        known = self._approvals.tools.get(server, {})
        self._write(tools={**self._approvals.tools, server: {**known, **tools}})

    def _write(self, **changed: object) -> None:
        self._approvals = self._approvals.model_copy(update=changed)
        body = json.dumps(self._approvals.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=1)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        half_written = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        try:
            half_written.write_text(body, encoding="utf-8")
            half_written.replace(self._path)
        except BaseException:
            half_written.unlink(missing_ok=True)
            raise
