"""YAML without its silent traps: a key that stands twice is an error here, and so is an alias.

Plain YAML takes the last of two equal keys, and lets a few lines of aliases stand for gigabytes.
"""

import yaml

# The parser in C reads the files of six tasks in a few milliseconds; the one in Python takes ten times as long.
_SAFE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> object:
    """Return what the one document in `text` says, None for an empty one.

    Raises:
        ValueError: if it is no YAML, or a key stands twice in one mapping, or it has an alias.
    """
    loader = _SAFE_LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_traps(node, set())
        parsed: object = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).replace('in "<unicode string>", ', "at ").split())) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    finally:
        loader.dispose()
    return parsed


def _refuse_traps(node: yaml.Node, seen: set[int]) -> None:
    """Look through the collections only: an alias of a scalar is as long as what it stands for."""
    if not isinstance(node, yaml.CollectionNode):
        return
    if id(node) in seen:
        raise ValueError(f"an alias refers to line {node.start_mark.line + 1}; write its content out")
    seen.add(id(node))
    parts = node.value
    if isinstance(node, yaml.MappingNode):
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    where = f"in the mapping at line {node.start_mark.line + 1}"
                    raise ValueError(f"the key {key.value!r} stands twice {where}; keep one")
                keys.add((key.tag, key.value))
        parts = [part for pair in node.value for part in pair]
    for part in parts:
        _refuse_traps(part, seen)
