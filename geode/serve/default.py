"""The scaffold of a production session that names none: every tool, a sub-agent that looks around, no hooks."""

from geode.scaffold import CompletionCheck, PromptSource, Scaffold, SubAgentContract, ToolChoice, ToolPlan
from geode.serve.catalogues import tool_names

_PROMPT = (
    "You are an agent that works for its user in a folder, by means of tools. Look before you change anything, do what"
    " was asked and no more, and say plainly what you did, what you did not do, and what you are not sure of."
)
_EXPLORER = SubAgentContract(
    name="explorer",
    tools=("list_files", "read_file", "search", "git_status", "git_diff", "git_log", "web_fetch"),
)


def default_scaffold(completion: CompletionCheck | None = None) -> Scaffold:
    """Return it, with a judge of its answers besides the rules if there is to be one."""
    return Scaffold(
        prompt=(PromptSource(origin="default", text=_PROMPT),),
        tools=ToolPlan(tools=tuple(ToolChoice(name=name) for name in tool_names())),
        sub_agents=(_EXPLORER,),
        completion=completion,
    )
