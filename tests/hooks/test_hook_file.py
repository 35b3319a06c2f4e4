"""Facts of `geode.hooks.hook_file`: files that people have are read, and a wrong one is refused whole."""

import json
from pathlib import Path

import pytest

from geode.hooks.hook_file import HookFileError, read_hook_file
from geode.hooks.points import HookPoint


def written(folder: Path, body: object) -> Path:
    path = folder / "settings.json"
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return path


def test_a_settings_file_is_read_and_what_has_no_place_here_is_named(tmp_path: Path) -> None:
    """People bring the file that they have; whatever of it does not work here must not pass in silence."""
    found = read_hook_file(
        written(
            tmp_path,
            {
                "permissions": {"allow": ["Bash(ls)"]},
                "hooks": {
                    "PreToolUse": [
                        {
                            "matcher": "Bash",
                            "hooks": [
                                {"type": "command", "command": "./guard.sh", "timeout": 5, "statusMessage": "..."},
                                {"type": "http", "url": "http://127.0.0.1:9/"},
                            ],
                        }
                    ],
                    "Stop": [{"hooks": [{"type": "command", "command": "./end.sh", "on_error": "allow"}]}],
                    "SessionStart": [{"matcher": "resume", "hooks": [{"type": "command", "command": "./hello.sh"}]}],
                    "WorktreeCreate": [{"hooks": [{"type": "command", "command": "./tree.sh"}]}],
                },
            },
        )
    )
    guard, end = found.entries
    assert (guard.point, guard.matcher, guard.command, guard.time_limit_s) == (
        HookPoint.PRE_TOOL_USE,
        "Bash",
        "./guard.sh",
        5.0,
    )
    assert (end.point, end.on_error_allow, end.time_limit_s) == (HookPoint.STOP, True, 60.0)
    assert len({entry.name for entry in found.entries}) == 2
    (start,) = found.observing
    assert (start.event, start.matcher, start.command, start.time_limit_s) == (
        "SessionStart",
        "resume",
        "./hello.sh",
        60.0,
    )
    assert ["http" in found.not_used[0], "WorktreeCreate" in found.not_used[1]] == [True, True]


def test_a_higher_priority_goes_first_and_equals_keep_their_places(tmp_path: Path) -> None:
    handlers = [
        {"type": "command", "command": name, "priority": priority} for name, priority in (("a", 0), ("b", 5), ("c", 0))
    ]
    found = read_hook_file(written(tmp_path, {"hooks": {"Stop": [{"hooks": handlers}]}}))
    assert [entry.command for entry in found.entries] == ["b", "a", "c"]


def test_no_file_is_no_hooks(tmp_path: Path) -> None:
    assert read_hook_file(tmp_path / "none.json").entries == ()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ([], "hooks must be an object"),
        ({"hooks": []}, "hooks must be an object"),
        ({"hooks": {"Stop": {}}}, "hooks.Stop must be a list"),
        ({"hooks": {"Stop": [{"matcher": "Bash", "hooks": []}]}}, "Stop is not about a tool"),
        ({"hooks": {"PreToolUse": [{"matcher": "(", "hooks": []}]}}, "no regular expression"),
        ({"hooks": {"PreToolUse": [{"hook": []}]}}, "hooks.PreToolUse[0].hooks"),
        ({"hooks": {"PreToolUse": [{"hooks": ["x"]}]}}, "hooks.PreToolUse[0].hooks[0]"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}, "hooks[0].command"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeot": 3}]}]}}, "timeot"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 0}]}]}}, "timeout"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "on_error": "pass"}]}]}}, "on_error"),
    ],
)
def test_a_wrong_file_is_refused_whole_with_the_place(tmp_path: Path, body: object, named: str) -> None:
    """Half of somebody's guards is a false sense of safety."""
    path = written(tmp_path, body)
    with pytest.raises(HookFileError) as refused:
        read_hook_file(path)
    assert named in str(refused.value)
    assert str(path) in str(refused.value)
