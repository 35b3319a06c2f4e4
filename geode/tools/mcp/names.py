"""Names of servers' tools as providers take them: each names the server that it is from, and no two ever meet."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

SEPARATOR = "__"
NAME_CHARS_MAX = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_MARK_DIGITS = 8
_ALIKE = str.maketrans("01i", "oll")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAddress:
    """A tool as its server knows it."""

    server: str
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTable:
    """Which name stands for which tool, and why some tools have none. Both directions are plain look-ups."""

    names: Mapping[ToolAddress, str]
    addresses: Mapping[str, ToolAddress]
    set_aside: Mapping[ToolAddress, str]


def assign_names(wanted: Iterable[ToolAddress]) -> NameTable:
    """Give each tool its name, in order. One whose name could be taken for an earlier one's gets none."""
    names: dict[ToolAddress, str] = {}
    set_aside: dict[ToolAddress, str] = {}
    seen: dict[str, ToolAddress] = {}
    for address in wanted:
        if not address.tool.isascii() or not address.tool.isprintable() or not address.tool.strip():
            # Letters of other scripts look like ours, and no provider takes them.
            set_aside[address] = "its name is not plain ASCII"
            continue
        name = _portable(address)
        other = seen.setdefault(name.lower().translate(_ALIKE), address)
        if other == address:
            names[address] = name
        else:
            set_aside[address] = f"its name looks like that of {other.tool!r} of {other.server!r}"
    addresses = {name: address for address, name in names.items()}
    return NameTable(
        names=MappingProxyType(names), addresses=MappingProxyType(addresses), set_aside=MappingProxyType(set_aside)
    )


def _portable(address: ToolAddress) -> str:
    plain = _FOREIGN.sub("_", address.tool)
    name = f"{address.server}{SEPARATOR}{plain}"
    if plain == address.tool and len(name) <= NAME_CHARS_MAX:
        return name
    # The mark comes from the tool's own name alone, so that no other tool can change it.
    mark = hashlib.sha256(address.tool.encode()).hexdigest()[:_MARK_DIGITS]
    return f"{name[: NAME_CHARS_MAX - _MARK_DIGITS - 1]}-{mark}"
