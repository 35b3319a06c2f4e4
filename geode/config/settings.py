"""Settings: read once, from the environment, by whoever starts the process. Nothing else reads the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from geode.config.paths import StateRoot


class BadSettings(ValueError):  # noqa: N818  (named by what is bad)
    """A file that the operator writes cannot be used. The text names the file, the place, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment decides.

    `environment` is a copy, for redaction and for what children may inherit.
    """

    root: StateRoot
    tracking_uri: str | None
    environment: Mapping[str, str]


def read_settings(root: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; `root` (from `--root`) wins over `GEODE_HOME`, which wins over `~/.geode`.

    Raises:
        ValueError: if `GEODE_HOME` is set to an empty or a relative path; a root that moves with the working folder
            would lose records. And if the root is a file, or the home of nobody.
    """
    env = dict(os.environ if environment is None else environment)
    home = env.get("GEODE_HOME")
    if root is None and home is not None and not Path(home).is_absolute() and not home.startswith("~"):
        raise ValueError(f"GEODE_HOME is {home!r}; set it to an absolute path, or unset it for ~/.geode")
    chosen = root or Path(home or "~/.geode")
    try:
        path = chosen.expanduser().resolve()
    except RuntimeError as error:
        raise ValueError(f"the state root {str(chosen)!r} is in the home of nobody ({error})") from error
    if path.exists() and not path.is_dir():
        raise ValueError(f"the state root {str(path)!r} is no folder; name one with --root, or in GEODE_HOME")
    return Settings(
        root=StateRoot(path),
        tracking_uri=env.get("MLFLOW_TRACKING_URI") or None,
        environment=env,
    )
