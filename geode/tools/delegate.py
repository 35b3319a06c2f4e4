"""Hands a task to a sub-agent: a session of its own, with no more rights than its parent and limits of its own.

What the sub-agent answers is the result of the call that asked for it, and of no other: the child is named before it
begins, its name stands in the call's receipt, and after a crash the receipt is settled by looking at that child.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from geode.canonical import canonical_json
from geode.scaffold import SubAgentContract
from geode.tools.files import TREE_EXCLUSIVE
from geode.tools.spec import Arguments, OutOfScope, SafetyLevel, ToolFailed, ToolOutput, ToolSpec

NAME = "delegate_task"
TASK_CHARS_MAX = 20_000
_GRACE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a child's one turn ended."""

    text: str
    verified: bool
    stop: str
    detail: str


class SessionOpener(Protocol):
    """Opens child sessions. It belongs to one parent session."""

    def draw(self) -> str:
        """Return the name of a child that is to come."""
        ...

    async def run(self, child: str, contract: SubAgentContract, task: str) -> ChildEnd:
        """Run a child's one turn, within its contract and what its parent has left.

        Raises:
            ToolFailed: if the child cannot begin.
        """
        ...

    def ended(self, child: str) -> bool | None:
        """Whether the child's turn came to its end; None if it began and did not."""
        ...


def delegate_tool(opener: SessionOpener, contracts: Sequence[SubAgentContract]) -> ToolSpec:
    """The `delegate_task` tool of one session, for the sub-agents that its scaffold has."""
    by_name = {contract.name: contract for contract in contracts}
    drawn: dict[str, deque[str]] = defaultdict(deque)

    def intent(arguments: Arguments) -> str:
        child = opener.draw()
        drawn[canonical_json(arguments)].append(child)
        return child

    def check_scope(arguments: Arguments) -> None:
        agent = arguments.get("agent")
        if isinstance(agent, str) and agent not in by_name:
            raise OutOfScope(f"there is no sub-agent {agent!r}; there are {', '.join(by_name)}")

    async def run(arguments: Arguments) -> ToolOutput:
        children = drawn[canonical_json(arguments)]
        if not children:
            raise ToolFailed("no child was named for this call before it began")
        end = await opener.run(children.popleft(), by_name[str(arguments["agent"])], str(arguments["task"]))
        if end.verified:
            return ToolOutput(text=end.text)
        why = f"{end.stop}: {end.detail}" if end.detail else end.stop
        return ToolOutput(text=f"[not verified, {why}]\n{end.text}".rstrip(), is_error=True)

    return ToolSpec(
        name=NAME,
        description=_description(contracts),
        input_schema={
            "type": "object",
            "properties": {
                "agent": {"enum": list(by_name), "description": "Which sub-agent."},
                "task": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": TASK_CHARS_MAX,
                    "pattern": r"\S",
                    "description": "All that it must know: it does not see this conversation.",
                },
            },
            "required": ["agent", "task"],
            "additionalProperties": False,
        },
        level=SafetyLevel.EXECUTE,
        handler=run,
        timeout_s=max(contract.limits.seconds for contract in contracts) + _GRACE_S,
        check_scope=check_scope,
        claims=lambda _: (TREE_EXCLUSIVE,),  # it works on the same files
        intent=intent,
        settled_by_probe=lambda _, child: opener.ended(child),
    )


def _description(contracts: Sequence[SubAgentContract]) -> str:
    agents = "; ".join(f"{contract.name} (tools: {', '.join(contract.tools)})" for contract in contracts)
    return f"Hand a task to a sub-agent, which works in the same workspace and answers once. Sub-agents: {agents}."
