"""The conversation as a state machine: whatever is tried in whatever order, what it would send can be sent."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from geode.dev.fake_provider.anthropic_rules import refusals
from geode.dev.strict_provider import to_body
from geode.llm.messages import Block, Message, Speaker, TextBlock, ToolResult, ToolUse, decode_message
from geode.loop.conversation import Conversation, IllFormed, answers_for_lost_calls, with_unique_ids
from geode.records.receipts import ReceiptState
from tests.doubles.toy_loop import snapshot
from tests.doubles.wire import problems

IDS = st.sampled_from(["a", "b", "c", ""])
TEXTS = st.sampled_from(["x", "y" * 900, " ", "z" * 3_000])
BLOCKS = st.one_of(
    st.builds(TextBlock, text=TEXTS),
    st.builds(ToolUse, call_id=IDS, name=st.just("t"), arguments=st.just("{}")),
    st.builds(ToolResult, call_id=IDS, text=TEXTS, is_error=st.booleans()),
)


class ConversationMachine(RuleBasedStateMachine):
    """Adds sound and unsound messages, shortens, and reopens from what was stored."""

    def __init__(self) -> None:
        super().__init__()
        self.conversation = Conversation()
        self.bodies: list[str] = []

    def append(self, message: Message) -> None:
        self.bodies.append(self.conversation.append(message))

    @initialize()
    def begin(self) -> None:
        self.append(Message(role=Speaker.USER, blocks=(TextBlock(text="go"),)))

    @rule(ids=st.lists(IDS, min_size=1, max_size=3))
    @precondition(lambda self: self.is_the_models_turn)
    def ask_for_tools(self, ids: list[str]) -> None:
        """The model repeats ids, and leaves them empty; they come in with names of their own."""
        uses = [ToolUse(call_id=call_id, name="t", arguments="{}") for call_id in ids]
        self.append(Message(role=Speaker.ASSISTANT, blocks=with_unique_ids(uses, self.conversation.call_ids)))

    @rule(text=st.sampled_from(["ok", "y" * 900]), context=st.booleans())
    @precondition(lambda self: self.conversation.awaited)
    def answer(self, text: str, context: bool) -> None:
        results: list[Block] = [
            ToolResult(call_id=call, text=text, is_error=False) for call in self.conversation.awaited
        ]
        more = [TextBlock(text="by the way")] if context else []
        self.append(Message(role=Speaker.USER, blocks=(*results, *more)))

    @rule()
    @precondition(lambda self: self.is_the_models_turn)
    def say(self) -> None:
        self.append(Message(role=Speaker.ASSISTANT, blocks=(TextBlock(text="done"),)))
        self.append(Message(role=Speaker.USER, blocks=(TextBlock(text="and now?"),)))

    @rule(role=st.sampled_from(Speaker), blocks=st.lists(BLOCKS, max_size=3))
    def try_anything(self, role: Speaker, blocks: list[Block]) -> None:
        """What does not fit is refused, and leaves everything as it was."""
        before = (list(self.conversation.messages), self.conversation.digest, self.conversation.tokens)
        try:
            self.append(Message(role=role, blocks=tuple(blocks)))
        except IllFormed:
            assert before == (list(self.conversation.messages), self.conversation.digest, self.conversation.tokens)

    @rule(tokens=st.integers(1, 2_000), spare=st.booleans())
    @precondition(lambda self: not self.conversation.awaited)
    def shorten(self, tokens: int, spare: bool) -> None:
        before = self.conversation.tokens
        self.conversation.shorten(tokens, spare_last_round=spare)
        assert self.conversation.tokens <= before

    @rule()
    def reopen_after_a_crash(self) -> None:
        """What was stored gives the same conversation; calls that nobody answered are answered before anything else."""
        again = Conversation()
        for body in self.bodies:
            again.append(decode_message(body))
        again.elide_to(self.conversation.elided)
        assert again.digest == self.conversation.digest
        assert again.tokens == self.conversation.tokens
        self.conversation = again
        if again.awaited:
            lost = again.messages[-1].tool_uses
            self.append(answers_for_lost_calls(lost, {lost[0].call_id: ReceiptState.UNCERTAIN}))

    @property
    def is_the_models_turn(self) -> bool:
        return not self.conversation.awaited and self.conversation.messages[-1].role is Speaker.USER

    @invariant()
    def what_would_be_sent_can_be_sent(self) -> None:
        if not self.conversation.messages:
            return
        if not self.is_the_models_turn:
            return
        request = self.conversation.request()
        assert problems(request) == []
        assert refusals(to_body(snapshot(request))) == []
        assert len(request) == len(self.conversation.messages)


TestConversation = ConversationMachine.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
