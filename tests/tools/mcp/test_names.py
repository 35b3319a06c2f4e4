"""Each tool has one name that providers take, and each name leads back to one tool."""

import re

from hypothesis import given
from hypothesis import strategies as st

from geode.tools.mcp.names import ToolAddress, assign_names

ADDRESSES = st.lists(
    st.builds(ToolAddress, server=st.from_regex(r"[a-z][a-z0-9-]{0,19}", fullmatch=True), tool=st.text(max_size=200)),
    unique=True,
    max_size=30,
)


def names(*tools: str, server: str = "s") -> dict[str, str]:
    table = assign_names(ToolAddress(server=server, tool=tool) for tool in tools)
    return {address.tool: name for address, name in table.names.items()}


def test_the_names_of_the_case_book() -> None:
    """R13: dotted names, a blank, 140 characters and another script: none may make a request fail, or meet another."""
    long = "a" * 140
    given_names = names("drive.search", "drive_search", "New Tool", long, "도구")
    assert given_names["drive_search"] == "s__drive_search"
    assert given_names["drive.search"].startswith("s__drive_search-")
    assert len(given_names[long]) == 64
    assert "도구" not in given_names
    assert len(set(given_names.values())) == 4


def test_a_name_does_not_depend_on_what_else_is_listed() -> None:
    """A tool that is renamed because another one came would be a silent change of the plan."""
    assert names("drive.search") == {"drive.search": names("drive_search", "drive.search")["drive.search"]}


def test_a_name_says_which_server_it_is_from_and_never_is_one_of_ours() -> None:
    """A09: a server that lists `shell` or `geode__bash` gets `s__shell` and `s__geode__bash`."""
    assert names("shell", "geode__bash") == {"shell": "s__shell", "geode__bash": "s__geode__bash"}


def test_a_name_that_looks_like_another_is_set_aside_with_its_reason() -> None:
    """A09: neither a Cyrillic letter nor a figure in the place of a letter passes for the tool that was meant."""
    table = assign_names(
        ToolAddress(server="s", tool=tool) for tool in ("read_file", "reаd_file", "read_fi1e", "READ_FILE")
    )
    assert [address.tool for address in table.names] == ["read_file"]
    assert [reason.split(" of ")[0] for reason in table.set_aside.values()] == [
        "its name is not plain ASCII",
        "its name looks like that",
        "its name looks like that",
    ]


@given(ADDRESSES)
def test_every_name_is_portable_and_leads_back(addresses: list[ToolAddress]) -> None:
    """Whatever servers list: a name is either taken by every provider, and unique, or not given."""
    table = assign_names(addresses)
    assert set(table.names) | set(table.set_aside) == set(addresses)
    assert not set(table.names) & set(table.set_aside)
    for address, name in table.names.items():
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
        assert name.split("__")[0] == address.server
        assert table.addresses[name] == address
    assert len({name.lower() for name in table.names.values()}) == len(table.names)
