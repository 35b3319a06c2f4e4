"""A script from a file: YAML or JSON, with the field names of `Script` and `Step`.

steps:
  - {failure: rate_limited, retry_after_s: 1}
  - {text: I look., calls: [{name: read_file, arguments: {path: README.md}}]}
then: {text: That is all.}
"""

import dataclasses
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from geode.config.plain_yaml import parse_plain_yaml
from geode.dev.fake_provider.script import Script

_SCRIPT = TypeAdapter(Script)


class ScriptInvalid(Exception):  # noqa: N818  (named by what happened)
    """The file is no script; the message names the file, the place and what is known there."""


def read_script(path: Path) -> Script:
    """Read a script.

    Raises:
        ScriptInvalid: if it says something that no script can say.
        OSError: if the file cannot be read.
    """
    try:
        return _SCRIPT.validate_python(parse_plain_yaml(path.read_bytes()) or {})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}" for fault in error.errors()]
        fields = ", ".join(field.name for field in dataclasses.fields(Script))
        raise ScriptInvalid(f"{path}: {'; '.join(faults)} (a script has {fields})") from error
    except ValueError as error:
        raise ScriptInvalid(f"{path}: {error}") from error
