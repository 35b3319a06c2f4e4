"""Which JSON Schemas a tool may have, and the one place that makes them ready for use.

A schema may come from a stranger (an MCP server), so it is bounded in depth, refers only to itself, and holds no
pattern that can hang the host. What is validated is what was shown to the model: both come from one private copy.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from pydantic import JsonValue
from referencing import Registry

from geode.tools.patterns import can_explode, compiled_pattern

MAX_DEPTH = 64
MAX_TEXT_CHARS = 100_000
MAX_PATTERN_SUBJECT_CHARS = 2_000  # a polynomial pattern stays bounded by what it reads
_MAX_SHOWN_CHARS = 80
_MAX_MESSAGE_CHARS = 300
_CACHED_SCHEMAS = 512


class BadSchema(ValueError):  # noqa: N818  (it names what is bad, as `BadArguments` does)
    """A tool's schema cannot be used: it is malformed, too deep, or refers to something outside itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSchema:
    """A schema that was checked, and a copy of it that nobody else can change."""

    text: str
    schema: dict[str, JsonValue]
    validator: Validator


def compiled(schema: Mapping[str, JsonValue]) -> CompiledSchema:
    """Check a tool's schema and return it ready for use; the work is done once a content.

    Raises:
        BadSchema: if it is no JSON Schema (2020-12) of an object, is nested too deep, holds a reference that is not
            local (`#/...`) or leads nowhere, or a pattern that can take exponential time.
    """
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadSchema(f"it is not JSON, or nested without end ({str(error)[:_MAX_SHOWN_CHARS]})") from error
    if len(text) > MAX_TEXT_CHARS:
        raise BadSchema(f"it has {len(text)} characters; at most {MAX_TEXT_CHARS} are read")
    return _compile(text)


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _compile(text: str) -> CompiledSchema:
    schema = json.loads(text)
    if schema.get("type") != "object":
        raise BadSchema(f"its root must have type 'object', not {schema.get('type')!r:.80}")
    _check_parts(schema, schema, depth=0)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path)) or "its root"
        raise BadSchema(f"{place}: {error.message[:_MAX_MESSAGE_CHARS]}") from error
    # An empty registry: no reference is ever fetched.
    return CompiledSchema(text=text, schema=schema, validator=_ToolValidator(schema, registry=Registry()))


def _check_parts(part: JsonValue, root: dict[str, JsonValue], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise BadSchema(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(part, list):
        for item in part:
            _check_parts(item, root, depth + 1)
    elif isinstance(part, dict):
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(reference := part.get(keyword), str):
                _check_reference(reference, root)
        if depth and isinstance(part.get("$id"), str):
            raise BadSchema(f"a part of it has an '$id' ({part['$id']!r:.80}); only its root may")
        if isinstance(pattern := part.get("pattern"), str):
            _check_pattern(pattern)
        if isinstance(patterns := part.get("patternProperties"), dict):
            for name in patterns:
                _check_pattern(name)
        for item in part.values():
            _check_parts(item, root, depth + 1)


def _check_reference(reference: str, root: dict[str, JsonValue]) -> None:
    if reference != "#" and not reference.startswith("#/"):
        raise BadSchema(f"it refers to {reference!r:.80}; only references inside itself ('#/...') are followed")
    target: JsonValue = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target = target[int(name)]
        elif isinstance(target, dict) and name in target:
            target = target[name]
        else:
            raise BadSchema(f"its reference {reference!r:.80} leads nowhere")


def _check_pattern(pattern: str) -> None:
    try:
        compiled_pattern(pattern)
    except ValueError as error:
        raise BadSchema(f"its pattern {error}") from error
    if can_explode(pattern):
        raise BadSchema(f"its pattern {pattern!r:.80} can take exponential time: no choice may stand in a repetition")


def _bounded_pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[ValidationError]:
    del validator, schema
    if not isinstance(instance, str):
        return
    if len(instance) > MAX_PATTERN_SUBJECT_CHARS:
        yield ValidationError(f"text of at most {MAX_PATTERN_SUBJECT_CHARS} characters can be matched")
    elif not compiled_pattern(pattern).search(instance):
        yield ValidationError(f"does not match {pattern!r}")


_ToolValidator = validators.extend(Draft202012Validator, {"pattern": _bounded_pattern})  # type: ignore[no-untyped-call]
