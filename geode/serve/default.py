"""The scaffold of a production session that names none: every tool of the workspace, a plain prompt, no hooks."""

from geode.scaffold import PromptSource, Scaffold, ToolChoice, ToolPlan
from geode.serve.catalogues import tool_names

_PROMPT = (
    "You are an agent that works for its user in a folder, by means of tools. Look before you change anything, do what"
    " was asked and no more, and say plainly what you did, what you did not do, and what you are not sure of."
)


def default_scaffold() -> Scaffold:
    """Return it."""
    return Scaffold(
        prompt=(PromptSource(origin="default", text=_PROMPT),),
        tools=ToolPlan(tools=tuple(ToolChoice(name=name) for name in tool_names())),
    )
