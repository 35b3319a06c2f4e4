"""One screen with a pointer and a keyboard. Off unless somebody binds it: whoever opens the session gives the screen.

A picture is written into the workspace, where the model's own tools, and a person, can look at it. What a screen shows
may be anybody's, so each call is of level external, and what is seen counts as personal data.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from geode.redaction import clean_text
from geode.tools.spec import Arguments, DataClass, ResourceClaim, SafetyLevel, ToolFailed, ToolOutput, ToolSpec
from geode.tools.workspace import Workspace

NAME = "computer"
_FOLDER = "screenshots"
_TEXT_CHARS_MAX = 10_000
_CLICKS_MAX = 3
_SCROLLS_MAX = 50
_BUTTONS: Final = {"left": 1, "middle": 2, "right": 3}


class ScreenFailed(Exception):  # noqa: N818  (named by what happened)
    """The screen cannot be reached, or does not know a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a screen, in pixels."""

    width: int
    height: int


class Screen(Protocol):
    """A screen with its pointer and its keyboard. Each method returns when it is done, or raises `ScreenFailed`."""

    def size(self) -> Size:
        """Return its size."""
        ...

    def picture(self) -> bytes:
        """Return what it shows, as PNG."""
        ...

    def move(self, x: int, y: int) -> None:
        """Put the pointer there."""
        ...

    def press(self, button: int) -> None:
        """Press and release a button: 1 left, 2 middle, 3 right, 4 the wheel up, 5 down."""
        ...

    def key(self, combination: str) -> None:
        """Press keys together, as `ctrl+shift+t` or `Return`."""
        ...

    def type(self, text: str) -> None:
        """Type text."""
        ...


def computer_tool(screen: Screen, workspace: Workspace) -> ToolSpec:
    """The `computer` tool on `screen`; pictures go into `workspace`."""
    bound = _Bound(screen, workspace)
    return ToolSpec(
        name=NAME,
        description=(
            "See and use a screen: screenshot (a PNG in the workspace), move, click, scroll, type text, press keys."
            " Take a screenshot before you act, and another one to see what came of it."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "action": {"enum": list(_ACTIONS)},
                "x": {"type": "integer", "minimum": 0},
                "y": {"type": "integer", "minimum": 0},
                "button": {"enum": list(_BUTTONS)},
                "count": {"type": "integer", "minimum": 1, "maximum": _CLICKS_MAX},
                "amount": {
                    "type": "integer",
                    "minimum": -_SCROLLS_MAX,
                    "maximum": _SCROLLS_MAX,
                    "description": "Steps of the wheel; more than 0 is down.",
                },
                "text": {"type": "string", "minLength": 1, "maxLength": _TEXT_CHARS_MAX},
                "keys": {"type": "string", "minLength": 1, "maxLength": 100, "description": "As ctrl+s or Return."},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        level=SafetyLevel.EXTERNAL,
        data_class=DataClass.PERSONAL,
        handler=partial(_run, bound),
        claims=lambda _: (ResourceClaim(resource="screen", exclusive=True),),
    )


@dataclass(slots=True)
class _Bound:
    screen: Screen
    workspace: Workspace
    taken: int = 0

    def point(self, arguments: Arguments) -> None:
        """Move the pointer to where the arguments say, if they do."""
        x, y = arguments.get("x"), arguments.get("y")
        if x is None and y is None:
            return
        size = self.screen.size()
        if not isinstance(x, int) or not isinstance(y, int) or x >= size.width or y >= size.height:
            raise ToolFailed(f"x and y must both lie on the screen, which is {size.width} x {size.height}")
        self.screen.move(x, y)


async def _run(bound: _Bound, arguments: Arguments) -> ToolOutput:
    try:
        return ToolOutput(text=_ACTIONS[str(arguments["action"])](bound, arguments))
    except ScreenFailed as error:
        raise ToolFailed(str(error)) from error


def _screenshot(bound: _Bound, _: Arguments) -> str:
    picture, size = bound.screen.picture(), bound.screen.size()
    folder = bound.workspace.root / _FOLDER
    if folder.is_symlink():
        raise ToolFailed(f"{_FOLDER} is a link; remove it, so that pictures stay in the workspace")
    folder.mkdir(exist_ok=True)
    bound.taken += 1
    while (path := folder / f"{bound.taken:04d}.png").exists():
        bound.taken += 1
    with path.open("xb") as file:
        file.write(picture)
    return f"wrote {bound.workspace.display(path)} ({size.width} x {size.height} pixels)"


def _move(bound: _Bound, arguments: Arguments) -> str:
    if "x" not in arguments or "y" not in arguments:
        raise ToolFailed("move needs x and y")
    bound.point(arguments)
    return f"the pointer is at {arguments['x']}, {arguments['y']}"


def _click(bound: _Bound, arguments: Arguments) -> str:
    bound.point(arguments)
    name, count = str(arguments.get("button", "left")), arguments.get("count", 1)
    assert isinstance(count, int)
    for _ in range(count):
        bound.screen.press(_BUTTONS[name])
    return f"clicked {name} {count} x"


def _scroll(bound: _Bound, arguments: Arguments) -> str:
    bound.point(arguments)
    amount = arguments.get("amount")
    if not isinstance(amount, int) or not amount:
        raise ToolFailed("scroll needs an amount other than 0")
    for _ in range(abs(amount)):
        bound.screen.press(5 if amount > 0 else 4)
    return f"scrolled {'down' if amount > 0 else 'up'} {abs(amount)}"


def _type(bound: _Bound, arguments: Arguments) -> str:
    if "text" not in arguments:
        raise ToolFailed("type needs text")
    text = clean_text(str(arguments["text"]))
    bound.screen.type(text)
    return f"typed {len(text)} characters"


def _key(bound: _Bound, arguments: Arguments) -> str:
    if "keys" not in arguments:
        raise ToolFailed("key needs keys")
    bound.screen.key(str(arguments["keys"]))
    return f"pressed {arguments['keys']}"


_ACTIONS: Final[Mapping[str, Callable[[_Bound, Arguments], str]]] = {
    "screenshot": _screenshot,
    "move": _move,
    "click": _click,
    "scroll": _scroll,
    "type": _type,
    "key": _key,
}
