"""Small `.eval` logs in Inspect's own shape: a zip with zstd members, written as Inspect writes them."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

ROLES = {"auditor": "acme/inquirer-2", "target": "acme/worker-1", "judge": "other/arbiter-3"}
AT = "2030-01-01T10:00:00+00:00"
Body = dict[str, JsonValue]


def judged(values: JsonValue, scorer: str = "audit_judge") -> Body:
    """The `scores` of a sample: one scorer with one value, or with an object of dimensions."""
    return {scorer: {"value": values, "explanation": "as seen", "metadata": {}, "history": []}}


def sample(
    sample_id: str | int,
    scores: Body | None = None,
    *,
    epoch: int = 1,
    error: str | None = None,
    messages: Sequence[Body] = (),
    attachments: Mapping[str, str] | None = None,
    role_usage: Body | None = None,
) -> Body:
    """One sample, whole."""
    body: Body = {
        "id": sample_id,
        "epoch": epoch,
        "input": "be curious",
        "target": "",
        "messages": list(messages),
        "scores": scores or {},
        "metadata": {},
        "events": [],
        "model_usage": {},
        "role_usage": role_usage or {},
        "started_at": AT,
        "completed_at": "2030-01-01T10:01:00+00:00",
        "total_time": 60.5,
        "working_time": 50.0,
        "uuid": f"uuid-{sample_id}-{epoch}",
        "error_retries": [],
        "attachments": dict(attachments or {}),
    }
    if error is not None:
        body["error"] = {"message": error, "traceback": "...", "traceback_ansi": "..."}
    return body


def summary(body: Body) -> Body:
    """What Inspect's summaries keep of a sample: its scores, and none of its usage by role."""
    kept = ("id", "epoch", "input", "target", "metadata", "scores", "started_at", "completed_at", "uuid")
    error = body.get("error")
    told = {"error": error["message"]} if isinstance(error, dict) else {}
    return {name: body[name] for name in kept} | {"role_usage": {}, "model_usage": {}} | told


def write_eval(
    path: Path,
    samples: Iterable[Body] = (),
    *,
    status: str | None = "success",
    error: str | None = None,
    means: Mapping[str, float] | None = None,
    epochs: int = 1,
    dataset_samples: int | None = None,
    journalled: int | None = None,
    roles: Mapping[str, str] = ROLES,
    config: Body | None = None,
    version: int = 2,
    replace: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a log. With `status` None its run was killed: no header, and a journal of `journalled` samples."""
    samples = list(samples)
    evaluation: Body = {
        "eval_id": f"eval-{path.stem}",
        "created": AT,
        "task": "acme/audit",
        "task_id": path.stem,
        "dataset": {"name": "seeds", "samples": len(samples) // epochs if dataset_samples is None else dataset_samples},
        "model": "none/none",
        "model_roles": {role: {"model": model, "config": {}, "args": {}} for role, model in roles.items()},
        "config": {"limit": 10, "epochs": epochs, **(config or {})},
        "revision": {"type": "git", "commit": "abc123"},
        "packages": {"inspect_ai": "0.3.220"},
    }
    members: dict[str, JsonValue] = {"_journal/start.json": {"version": version, "eval": evaluation, "plan": {}}}
    members |= {f"samples/{body['id']}_epoch_{body['epoch']}.json": body for body in samples}
    for number, body in enumerate(samples[:journalled], start=1):
        members[f"_journal/summaries/{number}.json"] = [summary(body)]
    if status is not None:
        members["summaries.json"] = [summary(body) for body in samples]
        scores: JsonValue = [
            {"name": name, "metrics": {"mean": {"value": mean}}} for name, mean in (means or {}).items()
        ]
        members["header.json"] = {
            "version": version,
            "status": status,
            "eval": evaluation,
            "results": {"scores": scores} if status == "success" else None,
            "stats": {"started_at": AT, "completed_at": ""},
            "error": None if error is None else {"message": error, "traceback": "...", "traceback_ansi": "..."},
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_ZSTANDARD) as archive:
        for name, content in members.items():
            data = (replace or {}).get(name, json.dumps(content).encode())
            archive.writestr(name, data)
    return path
