"""A tool call's arguments: from the model's raw text to a mapping that fits the tool's schema.

The text is untrusted: it may be cut, doubly encoded, ambiguous or built to exhaust the reader. Nothing is guessed or
repaired, except that an object which was encoded twice is decoded once more, and this is noted.
"""

import json
import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, NoReturn

from jsonschema.exceptions import ValidationError
from pydantic import JsonValue
from referencing.exceptions import Unresolvable

from geode.redaction import clean_text
from geode.tools.schema import BadSchema, compiled
from geode.tools.spec import Arguments, ToolFailed, ToolSpec

MAX_TEXT_CHARS = 1_000_000
MAX_DEPTH = 32
MAX_KEY_CHARS = 1_000
_MAX_PROBLEMS = 3
_MAX_SHOWN_CHARS = 80
_MAX_MESSAGE_CHARS = 600
_INT64 = 2**63
_INT64_DIGITS = 20  # with the sign


class BadArguments(ToolFailed):
    """The arguments' text is not one JSON object with one meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedArguments:
    """The object that the text holds. `twice_encoded` is true when it came as a JSON string of a JSON object."""

    arguments: dict[str, JsonValue]
    twice_encoded: bool = False


def parse_arguments(text: str) -> ParsedArguments:
    """Read the arguments of a call. An empty text is the empty object: the schema says whether that is enough.

    Raises:
        BadArguments: for anything but one unambiguous object within the bounds; its text tells the model why.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise BadArguments(f"the arguments have {len(text)} characters; at most {MAX_TEXT_CHARS} are read: send less")
    if not text.strip():
        return ParsedArguments(arguments={})
    value = _decode(text)
    twice_encoded = isinstance(value, str)
    if isinstance(value, str):
        value = _decode(value) if value.lstrip().startswith("{") else value
    if not isinstance(value, dict):
        raise BadArguments(f"the arguments must be a JSON object, not {_shown(value)}")
    return ParsedArguments(arguments=value, twice_encoded=twice_encoded)


def check_arguments(spec: ToolSpec, arguments: Arguments) -> str | None:
    """Say what is wrong with `arguments` under the schema of `spec`, in words to act on, or return None.

    At most three problems are named. A schema that cannot be applied refuses the call too: what nobody checked does
    not run.
    """
    instance = arguments if isinstance(arguments, dict) else dict(arguments)
    try:
        validator = compiled(spec.input_schema).validator
        problems = [_in_words(error) for error in islice(validator.iter_errors(instance), _MAX_PROBLEMS)]
    except (BadSchema, RecursionError, Unresolvable) as error:
        return f"the schema of {spec.name!r} cannot be applied ({_cut(str(error), _MAX_SHOWN_CHARS)}): use another tool"
    if not problems:
        return None
    listed = "; ".join(dict.fromkeys(problems))
    return _cut(f"the arguments of {spec.name!r} do not fit its schema: {listed}", _MAX_MESSAGE_CHARS)


def _decode(text: str) -> JsonValue:
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadArguments(_not_json(text, error)) from error
    except RecursionError as error:
        raise BadArguments(f"the arguments are nested more than {MAX_DEPTH} deep") from error
    # Only an escape or a character outside ASCII can bring what must be cleaned, only brackets can nest.
    if text.count("{") + text.count("[") > MAX_DEPTH or not text.isascii() or "\\u" in text:
        return _clean(value, depth=0)
    return value


def _clean(value: JsonValue, depth: int) -> JsonValue:
    if isinstance(value, str):
        return clean_text(value)
    if depth >= MAX_DEPTH and isinstance(value, dict | list):
        raise BadArguments(f"the arguments are nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return _one_meaning([(clean_text(key), _clean(item, depth + 1)) for key, item in value.items()])
    return value


def _one_meaning(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        last = {key: place for place, (key, _) in enumerate(pairs)}
        twice = next(key for place, (key, _) in enumerate(pairs) if last[key] != place)
        raise BadArguments(f"the arguments name {_shown(twice)} more than once: which one is meant cannot be known")
    if any(len(key) > MAX_KEY_CHARS for key in mapping):
        raise BadArguments(f"a key of the arguments has more than {MAX_KEY_CHARS} characters")
    return mapping


def _bounded_int(digits: str) -> int:
    if len(digits) <= _INT64_DIGITS and -_INT64 <= (value := int(digits)) < _INT64:
        return value
    raise BadArguments(f"the integer {_cut(digits, _MAX_SHOWN_CHARS)} does not fit into 64 bits")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise BadArguments(f"the number {_cut(digits, _MAX_SHOWN_CHARS)} is too large")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise BadArguments(f"{name} is not JSON: give a number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_one_meaning, parse_int=_bounded_int, parse_float=_finite, parse_constant=_refuse_constant
)


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()):
        return f"the arguments end in the middle, after {len(text)} characters: the call was cut; send a shorter one"
    near = clean_text(text[max(0, error.pos - 20) : error.pos + 20])
    return f"the arguments are not JSON: {error.msg} at character {error.pos}, near {near!r}"


def _in_words(error: ValidationError) -> str:
    place = "/".join(map(str, error.absolute_path))
    where = f"{_cut(place, _MAX_SHOWN_CHARS)!r}: " if place else ""
    value: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "required":
            return f"{where}missing {', '.join(repr(name) for name in value if name not in instance)}"
        case "additionalProperties" if value is False:
            return where + _unknown_names(error)
        case "type":
            kinds = value if isinstance(value, str) else " or ".join(value)
            return f"{where}expected {kinds}, got {_shown(instance)}"
        case "enum":
            choices = _cut(", ".join(map(_shown, value)), _MAX_SHOWN_CHARS * 2)
            return f"{where}expected one of {choices}, got {_shown(instance)}"
        case "pattern":
            return f"{where}{_shown(instance)}: {_cut(error.message, _MAX_SHOWN_CHARS * 2)}"
        case _:
            return f"{where}{_shown(instance)} breaks {error.validator}: {_cut(json.dumps(value), _MAX_SHOWN_CHARS)}"


def _unknown_names(error: ValidationError) -> str:
    schema: Any = error.schema
    names: Any = error.instance
    known, patterns = list(schema.get("properties", {})), list(schema.get("patternProperties", {}))
    unknown = [n for n in names if n not in known and not any(re.search(p, n) for p in patterns)]
    told: list[str] = []
    for name in unknown[:_MAX_PROBLEMS]:
        near = get_close_matches(name[:_MAX_SHOWN_CHARS], known, n=1)
        told.append(f"unknown {_shown(name)}" + (f" (did you mean {near[0]!r}?)" if near else ""))
    return f"{', '.join(told)}; known are {', '.join(map(repr, known)) or 'none'}"


def _shown(value: object) -> str:
    """A value as JSON has it if it is short, else its kind and size."""
    match value:
        case str():
            return repr(_cut(value, _MAX_SHOWN_CHARS))
        case list():
            return f"an array of {len(value)}"
        case dict():
            return f"an object of {len(value)}"
        case _:
            return _cut(json.dumps(value), _MAX_SHOWN_CHARS)


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
