"""Done line 4: the recorded MCPMark experiments import, and every figure that can be recomputed comes out."""

import json
from pathlib import Path

import pytest

from tests.done.command import geode


@pytest.mark.slow
def test_every_recomputable_figure_matches_and_the_others_say_why_not(shared: Path, tmp_path: Path) -> None:
    """Published figures are the only outside measure of whether records are read right."""
    root = ("--root", str(tmp_path))
    imported = geode(tmp_path, "archive", "import", str(shared / "archive" / "mcpmark"), *root)
    assert imported.code == 0, imported.err
    assert "89 attempts" in imported.out

    checked = geode(
        tmp_path, "archive", "check", "--golden", str(shared / "archive" / "GOLDEN.json"), "--only", "mcpmark",
        "--json", *root,
    )  # fmt: skip

    assert checked.code == 0, checked.out + checked.err
    figures = json.loads(checked.out)
    by_status: dict[str, list[dict[str, object]]] = {}
    for figure in figures:
        by_status.setdefault(figure["status"], []).append(figure)
    assert "differs" not in by_status
    assert len(by_status["match"]) >= 31
    assert all(figure["reason"] for status, group in by_status.items() if status != "match" for figure in group)
