"""Facts of the computer tool: on a double what it asks for, and on a real X server what comes of it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from geode.authority import DataClass, SafetyLevel
from geode.executor.policy import Authority, Mode, rule
from geode.tools.arguments import check_arguments
from geode.tools.computer import NAME, Screen, ScreenFailed, Size, computer_tool
from geode.tools.spec import ToolFailed, ToolOutput
from geode.tools.workspace import Workspace

PNG = b"\x89PNG\r\n\x1a\n"


class DoubleScreen:
    """Notes what is done to it."""

    def __init__(self) -> None:
        self.done: list[tuple[str, object]] = []

    def size(self) -> Size:
        return Size(width=100, height=50)

    def picture(self) -> bytes:
        return PNG

    def move(self, x: int, y: int) -> None:
        self.done.append(("move", (x, y)))

    def press(self, button: int) -> None:
        self.done.append(("press", button))

    def key(self, combination: str) -> None:
        if combination == "no+such":
            raise ScreenFailed("there is no key 'such'")
        self.done.append(("key", combination))

    def type(self, text: str) -> None:
        self.done.append(("type", text))


async def act(screen: Screen, root: Path, **arguments: JsonValue) -> ToolOutput:
    spec = computer_tool(screen, Workspace(root))
    assert check_arguments(spec, arguments) is None
    return await spec.handler(arguments)


async def test_each_action_is_done_and_told(root: Path) -> None:
    screen = DoubleScreen()
    assert (await act(screen, root, action="click", x=3, y=4, button="right", count=2)).text == "clicked right 2 x"
    assert (await act(screen, root, action="scroll", amount=-2)).text == "scrolled up 2"
    await act(screen, root, action="type", text="héllo")
    await act(screen, root, action="key", keys="ctrl+s")
    assert screen.done == [
        ("move", (3, 4)),
        ("press", 3),
        ("press", 3),
        ("press", 4),
        ("press", 4),
        ("type", "héllo"),
        ("key", "ctrl+s"),
    ]


async def test_pictures_lie_in_the_workspace_and_never_replace_one(root: Path) -> None:
    first = await act(DoubleScreen(), root, action="screenshot")
    second = await act(DoubleScreen(), root, action="screenshot")
    assert first.text == "wrote screenshots/0001.png (100 x 50 pixels)"
    assert second.text == "wrote screenshots/0002.png (100 x 50 pixels)"
    assert (root / "screenshots" / "0001.png").read_bytes() == PNG


async def test_a_link_does_not_lead_pictures_out(root: Path, tmp_path: Path) -> None:
    (root / "screenshots").symlink_to(tmp_path)
    with pytest.raises(ToolFailed, match="is a link"):
        await act(DoubleScreen(), root, action="screenshot")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "move"}, "move needs x and y"),
        ({"action": "click", "x": 100, "y": 0}, "100 x 50"),
        ({"action": "click", "x": 1}, "both lie on the screen"),
        ({"action": "scroll"}, "amount"),
        ({"action": "type"}, "needs text"),
        ({"action": "key", "keys": "no+such"}, "no key 'such'"),
    ],
)
async def test_what_cannot_be_done_is_told_and_not_done(root: Path, arguments: dict[str, JsonValue], said: str) -> None:
    screen = DoubleScreen()
    with pytest.raises(ToolFailed, match=said):
        await act(screen, root, **arguments)
    assert screen.done == []


def test_nobody_uses_a_screen_unattended_or_in_an_experiment(root: Path) -> None:
    spec = computer_tool(DoubleScreen(), Workspace(root))
    assert (spec.name, spec.level, spec.data_class) == (NAME, SafetyLevel.EXTERNAL, DataClass.PERSONAL)
    answers = {mode: rule(mode, spec.name, spec.level, spec.data_class).authority for mode in Mode}
    assert answers == {
        Mode.REPL: Authority.ASK,
        Mode.IPC: Authority.ASK,
        Mode.DAEMON: Authority.DENY,
        Mode.MCP: Authority.DENY,
        Mode.EXPERIMENT: Authority.DENY,
    }


@pytest.fixture
def display(tmp_path: Path) -> Iterator[str]:
    """A real X server of this test's own."""
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "320x200x24", "-nolisten", "tcp"],
        pass_fds=(write,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    try:
        with os.fdopen(read) as told:
            number = told.readline().strip()
        assert number, "the X server did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(timeout=10)


@pytest.mark.slow
async def test_a_real_screen_shows_what_the_pointer_and_the_keys_did(display: str, root: Path) -> None:
    """A window of this test's own, on a real X server, hears the click and each letter, also one that no key has."""
    xlib = pytest.importorskip("Xlib.display")
    from Xlib import XK, X

    from geode.tools.x_screen import XScreen

    watching = xlib.Display(display)
    screen = watching.screen()
    window = screen.root.create_window(
        0, 0, 200, 100, 0, screen.root_depth, background_pixel=0xFF0000, event_mask=X.KeyPressMask | X.ButtonPressMask
    )
    window.map()
    watching.sync()
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    watching.sync()
    computer = XScreen(display)
    assert computer.size() == Size(width=320, height=200)
    shown = await act(computer, root, action="screenshot")
    assert shown.text == "wrote screenshots/0001.png (320 x 200 pixels)"
    from PIL import Image

    with Image.open(root / "screenshots" / "0001.png") as image:
        assert image.convert("RGB").getpixel((10, 10)) == (255, 0, 0)
    await act(computer, root, action="click", x=20, y=30)
    await act(computer, root, action="type", text="aB€")
    await act(computer, root, action="key", keys="Return")
    heard: list[tuple[str, object]] = []
    while sum(kind == "key" for kind, _ in heard) < 5:  # Shift is one; the test's own time limit is the end of waiting
        event = watching.next_event()
        if event.type == X.MappingNotify:
            watching.refresh_keyboard_mapping(event)
        elif event.type == X.ButtonPress:
            heard.append(("click", (event.root_x, event.root_y, event.detail)))
        elif event.type == X.KeyPress:
            heard.append(("key", watching.keycode_to_keysym(event.detail, event.state & X.ShiftMask)))
    euro = 0x01000000 + ord("€")
    keys = [value for kind, value in heard if kind == "key"]
    assert heard[0] == ("click", (20, 30, 1))
    assert keys == [XK.XK_a, XK.XK_Shift_L, XK.XK_B, euro, XK.XK_Return]
    watching.close()
    computer.close()


@pytest.mark.slow
def test_a_display_that_is_not_there_is_named() -> None:
    pytest.importorskip("Xlib.display")
    from geode.tools.x_screen import XScreen

    with pytest.raises(ScreenFailed, match="':987' cannot be opened"):
        XScreen(":987")
