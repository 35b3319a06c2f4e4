"""Where the Hydra tree lies: inside the installed package, or beside the packages in a working copy."""

from pathlib import Path

import geode


def config_dir() -> Path:
    """Return the absolute folder that holds `config.yaml`."""
    packaged = Path(geode.__file__).resolve().parent / "configs"
    if (packaged / "config.yaml").is_file():
        return packaged
    return Path(geode.__file__).resolve().parents[1] / "configs"
