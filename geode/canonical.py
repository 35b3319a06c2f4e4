"""One byte form for every value that is hashed, so that equal content has an equal name."""

import hashlib
import json

# `json.dumps` builds a new one for each call.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_HINT = "only null, booleans, integers, finite floats, strings, lists and string-keyed mappings have one"


def canonical_json(value: object) -> str:
    """Return the canonical JSON text of `value`: sorted keys, no blanks, UTF-8 characters as they are.

    Raises:
        ValueError: for NaN or infinity, which JSON does not have.
        TypeError: for a value that JSON does not have, or a mapping with keys that are not strings.
    """
    _refuse_foreign_keys(value)
    try:
        return _ENCODER.encode(value)
    except TypeError as error:
        raise TypeError(f"no canonical JSON for this value ({error}); {_HINT}") from error


def content_hash(value: object) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _refuse_foreign_keys(value: object) -> None:
    # json.dumps turns the keys 1 and True into strings, so two different mappings would get one name.
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"no canonical JSON for the mapping key {key!r}; {_HINT}")
            _refuse_foreign_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_foreign_keys(item)
