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
    line = node.start_mark.line + 1
    if id(node) in seen:
        raise ValueError(f"an alias refers to line {line}; write its content out")
    seen.add(id(node))
    match node:
        case yaml.MappingNode():
            keys: set[tuple[str, str]] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if (key.tag, key.value) in keys:
                        raise ValueError(f"the key {key.value!r} stands twice in the mapping at line {line}; keep one")
                    keys.add((key.tag, key.value))
                _refuse_traps(key, seen)
                _refuse_traps(value, seen)
        case yaml.SequenceNode():
            for item in node.value:
                _refuse_traps(item, seen)
