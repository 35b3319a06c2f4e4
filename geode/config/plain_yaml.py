"""YAML that every reader understands alike: a key stands once in a mapping, and nothing refers to another place.

Plain YAML takes the last of two equal keys without a word, which in a file of rules would drop the first ones.
"""

import yaml

FILE_BYTES_MAX = 256_000


def parse_plain_yaml(content: bytes) -> object:
    """Return what the one document in `content` says, None for an empty one.

    Raises:
        ValueError: if it is too large, no UTF-8, no YAML, or has an alias or a key twice; it names the line.
    """
    if len(content) > FILE_BYTES_MAX:
        raise ValueError(f"it has {len(content)} bytes; at most {FILE_BYTES_MAX} are read")
    try:
        return yaml.load(content.decode(), Loader=_PlainLoader)  # noqa: S506  (it is a safe loader)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no UTF-8 text ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).replace('in "<unicode string>", ', "at ").split())) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


class _PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="an alias; write its content out", problem_mark=mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        if isinstance(node, yaml.MappingNode):
            seen = {"<<"}  # a merge says the same key in two places
            for key, _ in node.value:
                if str(key.value) in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value!r} stands twice; keep one", problem_mark=key.start_mark
                    )
                seen.add(str(key.value))
        return node
