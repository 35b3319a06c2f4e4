"""The system prompt: where its pieces come from, and how they are joined."""

import re
from collections.abc import Sequence
from pathlib import Path

from geode.redaction import clean_text
from geode.scaffold import PromptSource, Scaffold

WORKSPACE_NOTE = "Your workspace is the folder /workspace. Paths are relative to it or begin with /workspace."
_MAX_BYTES = 256 * 1024
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$", re.MULTILINE)


class PromptSourceError(ValueError):
    """A prompt source cannot be read. The text names the file, the section and what there is instead."""


def read_sections(path: Path, sections: Sequence[str] = ()) -> PromptSource:
    """Read a Markdown file, or only the sections with these headings, in the order asked for.

    A section runs from its heading to the next heading of any level.

    Raises:
        PromptSourceError: if the file cannot be read or a section is not in it.
    """
    text = _read(path)
    if not sections:
        return PromptSource(kind="file_sections", origin=path.name, text=text.strip())
    marks = list(_HEADING.finditer(text))
    bodies = {
        mark[1]: text[mark.end() : following.start() if following else len(text)].strip()
        for mark, following in zip(marks, [*marks[1:], None], strict=False)  # a file may have no heading at all
    }
    if missing := [name for name in sections if name not in bodies]:
        raise PromptSourceError(
            f"{path} has no section {missing[0]!r}; it has {', '.join(map(repr, bodies)) or 'none'}"
        )
    chosen = "\n\n".join(f"## {name}\n{bodies[name]}" for name in sections)
    return PromptSource(kind="file_sections", origin=f"{path.name}#{','.join(sections)}", text=chosen)


def read_rules_folder(path: Path) -> tuple[PromptSource, ...]:
    """Read every Markdown file of a folder, in the order of their names, one source a file.

    Raises:
        PromptSourceError: if it is no folder, or holds no Markdown file.
    """
    if not path.is_dir():
        raise PromptSourceError(f"{path} is no folder of rules")
    files = sorted(entry for entry in path.iterdir() if entry.suffix == ".md" and entry.is_file())
    if not files:
        raise PromptSourceError(f"{path} holds no Markdown file; rules are files that end in .md")
    return tuple(
        PromptSource(kind="rules_folder", origin=f"{path.name}:{file.name}", text=_read(file).strip()) for file in files
    )


def system_prompt(scaffold: Scaffold) -> str:
    """Join the prompt sources of a scaffold, its decomposition text and its skills, and say where the workspace is."""
    parts = [source.text for source in scaffold.prompt]
    parts.append(WORKSPACE_NOTE)
    if scaffold.decomposition:
        parts.append(scaffold.decomposition)
    parts.extend(f"Skill {skill.name}:\n{skill.text}" for skill in scaffold.skills)
    return clean_text("\n\n".join(part.strip() for part in parts if part.strip()))


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise PromptSourceError(f"{path} has more than {_MAX_BYTES // 1024} KiB; a prompt source is a short text")
        return clean_text(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PromptSourceError(f"{path} cannot be read as UTF-8 text ({error})") from error
