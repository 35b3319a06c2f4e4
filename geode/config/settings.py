"""Settings: read once, from the environment, by whoever starts the process. Nothing else reads the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from geode.config.paths import StateRoot


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
            would lose records.
    """
    env = dict(os.environ if environment is None else environment)
    home = env.get("GEODE_HOME")
    if root is None and home is not None and not Path(home).expanduser().is_absolute():
        raise ValueError(f"GEODE_HOME is {home!r}; set it to an absolute path, or unset it for ~/.geode")
    chosen = root or Path(home or "~/.geode")
    return Settings(
        root=StateRoot(chosen.expanduser().resolve()),
        tracking_uri=env.get("MLFLOW_TRACKING_URI") or None,
        environment=env,
    )
