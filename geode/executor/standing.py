"""Files that act later, when nobody asks any more: hooks, start-up files, workflows. And GEODE's own files.

Writing one is running something, only not now: such a write counts as of level `execute`. The list is of files that run
without being named; a script or a Makefile runs when somebody calls it, and is not on it.
"""

from typing import Final

from geode.executor.patterns import path_fits, path_pattern

OWN_FOLDER: Final = ".geode"

_FILES: Final = (
    # git, and what is called by it
    *(
        ".git/**",
        ".githooks/**",
        ".husky/**",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        ".lefthook.yml",
        ".gitmodules",
    ),
    # on entering a folder, on starting a shell, on logging in
    *(".envrc", ".autoenv", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".mkshrc", ".xprofile", ".xinitrc", ".inputrc"),
    *(".ssh/**", ".config/autostart/**", ".config/systemd/**", ".config/fish/**", "LaunchAgents/**"),
    *("crontab", "cron.d/**", "cron.daily/**", "cron.hourly/**"),
    # by Python, without being named
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth"),
    # by a build service
    *(".github/workflows/**", ".github/actions/**", ".gitlab-ci.yml", ".circleci/**", ".travis.yml", ".drone.yml"),
    *("Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite/**", ".woodpecker/**", ".ci/**"),
    # by editors, debuggers and other agents
    *(".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".devcontainer/**", ".idea/**", ".exrc"),
    *(".vimrc", ".nvimrc", ".nvim.lua", ".gdbinit", ".lldbinit", ".claude/**", ".mcp.json", ".cursor/**", ".npmrc"),
)


# A repository may lie inside another, so every folder counts as the one in which such a file acts.
_RUNS_LATER: Final = path_pattern(*_FILES, anywhere=True)


def runs_later(path: str) -> bool:
    """Whether what is written to `path`, relative to the workspace, runs without anybody naming it."""
    return _RUNS_LATER.fullmatch(path) is not None


def is_own(path: str, own: tuple[str, ...] = ()) -> bool:
    """Whether `path` is one of GEODE's own files: below a `.geode` folder, or below one of `own`."""
    return OWN_FOLDER in path.lower().split("/") or any(path_fits(place, path) for place in own)
