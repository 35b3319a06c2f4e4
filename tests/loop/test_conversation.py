"""Facts of `geode.loop.conversation`: whatever was accepted can be sent, and shortening keeps every pair a pair."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geode.llm.messages import Block, Message, Origin, Speaker, TextBlock, ToolResult, ToolUse, encode_message
from geode.loop.conversation import (
    Conversation,
    IllFormed,
    answers_for_lost_calls,
    host_message,
    tokens_of,
    with_unique_ids,
)
from geode.records.receipts import ReceiptState
from tests.doubles.wire import problems

IDS = st.sampled_from(["a", "b", "c", ""])
TEXTS = st.sampled_from(["hello", "", " ", "x" * 2_000])
ANY_BLOCK: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, text=TEXTS),
    st.builds(ToolUse, call_id=IDS, name=st.just("t"), arguments=st.just("{}")),
    st.builds(ToolResult, call_id=IDS, text=TEXTS),
)
ANY_MESSAGE = st.builds(Message, role=st.sampled_from(Speaker), blocks=st.lists(ANY_BLOCK, max_size=3).map(tuple))


def user(text: str = "go") -> Message:
    return Message(role=Speaker.USER, blocks=(TextBlock(text=text, origin=Origin.USER),))


def says(text: str = "ok") -> Message:
    return Message(role=Speaker.ASSISTANT, blocks=(TextBlock(text=text),))


def asks(*ids: str) -> Message:
    uses = tuple(ToolUse(call_id=call_id, name="t", arguments="{}") for call_id in ids)
    return Message(role=Speaker.ASSISTANT, blocks=uses)


def answers(*ids: str, text: str = "r", more: str = "") -> Message:
    results: tuple[Block, ...] = tuple(ToolResult(call_id=call_id, text=text) for call_id in ids)
    return Message(role=Speaker.USER, blocks=(*results, TextBlock(text=more)) if more else results)


def talk(*messages: Message) -> Conversation:
    conversation = Conversation()
    for message in messages:
        conversation.append(message)
    return conversation


def state(conversation: Conversation) -> tuple[object, ...]:
    return (
        tuple(conversation.messages),
        conversation.digest,
        conversation.tokens,
        conversation.awaited,
        frozenset(conversation.call_ids),
    )


@st.composite
def fitting(draw: st.DrawFn, conversation: Conversation) -> Message:
    """Mostly a message that fits, so that histories grow long; sometimes any."""
    if draw(st.integers(0, 4)) == 0:
        return draw(ANY_MESSAGE)
    if conversation.awaited:
        return answers(
            *conversation.awaited, text=draw(st.sampled_from(["r", "y" * 1_000])), more=draw(st.sampled_from(["", "m"]))
        )
    new = [f"id{len(conversation.call_ids) + n}" for n in range(draw(st.integers(0, 3)))]
    return draw(st.sampled_from([user(), says(), asks(*new) if new else says()]))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_was_accepted_can_be_sent_and_whatever_was_refused_left_no_trace(data: st.DataObject) -> None:
    """Contract 5.3, held against a validator that shares no code with it. R01, R02, R07, R08 are its parts."""
    conversation = Conversation()
    for _ in range(data.draw(st.integers(1, 12))):
        message = data.draw(fitting(conversation))
        before = state(conversation)
        would_be = problems([*conversation.messages, message], is_request=False)
        try:
            conversation.append(message)
        except IllFormed:
            assert state(conversation) == before
            assert would_be, "a message was refused that every provider takes"
        else:
            assert would_be == []
        if data.draw(st.booleans()):
            conversation.shorten(data.draw(st.integers(0, 600)), spare_last_round=data.draw(st.booleans()))
        if problems(conversation.messages):
            with pytest.raises(IllFormed):
                conversation.request()
        else:
            assert problems(conversation.request()) == []


@pytest.mark.parametrize(
    ("before", "message", "problem"),
    [
        ([user(), asks("a")], user("never mind"), "do not answer"),
        ([user(), asks("a")], says(), "must be answered before"),
        ([user(), asks("a", "b")], answers("a"), "do not answer"),
        ([user(), asks("a", "b")], answers("b", "a"), "do not answer"),
        ([user(), asks("a")], answers("a", "a"), "do not answer"),
        ([user()], answers("a"), "do not answer"),
        ([user(), asks("a"), answers("a")], answers("a"), "do not answer"),
        ([user(), asks("a"), answers("a")], asks("a"), "unique"),
        ([user()], asks("a", "a"), "unique"),
        ([user()], asks(""), "unique"),
        ([], says(), "begins with the user"),
        ([user()], Message(role=Speaker.ASSISTANT, blocks=()), "at least one block"),
        ([user()], says(" \n"), "may not be empty"),
        ([user(), asks("a")], answers("a", text=""), "may not be empty"),
        ([], Message(role=Speaker.USER, blocks=asks("a").blocks), "may not ask"),
        (
            [user(), asks("a")],
            Message(role=Speaker.USER, blocks=(TextBlock(text="x"), *answers("a").blocks)),
            "come first",
        ),
        ([user()], Message(role=Speaker.ASSISTANT, blocks=answers("a").blocks), "must be answered before"),
    ],
)
def test_what_a_provider_would_refuse_is_refused_here_with_its_reason(
    before: list[Message], message: Message, problem: str
) -> None:
    conversation = talk(*before)
    kept = state(conversation)
    with pytest.raises(IllFormed, match=problem):
        conversation.append(message)
    assert state(conversation) == kept


def test_a_request_ends_with_the_user_unless_the_model_paused() -> None:
    """R30: a paused turn is sent back unchanged; anything else would let the model talk to itself."""
    conversation = talk(user(), says("thinking"))
    with pytest.raises(IllFormed):
        conversation.request()
    assert conversation.request(paused=True) == (user(), says("thinking"))
    with pytest.raises(IllFormed):
        talk(user(), asks("a")).request(paused=True)
    with pytest.raises(IllFormed):
        Conversation().request(paused=True)


# Digest


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([user("a"), user("b"), user("ab")]), max_size=4),
    st.lists(st.sampled_from([user("a"), user("b"), user("ab")]), max_size=4),
)
def test_equal_digests_mean_equal_messages(one: list[Message], other: list[Message]) -> None:
    assert (talk(*one).digest == talk(*other).digest) == (one == other)


def test_a_shortened_request_has_another_digest_and_the_same_after_reopening() -> None:
    """A recording is found by the digest: what is asked differs, so the name must."""
    history = [user(), asks("a"), answers("a", text="x" * 1_000), asks("b"), answers("b")]
    whole, short = talk(*history), talk(*history)
    short.shorten(10)
    assert short.digest != whole.digest
    again = talk(*history)
    again.elide_to(short.elided)
    assert (again.digest, again.request()) == (short.digest, short.request())


# Shortening

ROUNDS = [
    user(),
    asks("a"),
    answers("a", text="x" * 4_000),
    asks("b"),
    answers("b", text="y" * 4_000),
    asks("c"),
    answers("c", text="z" * 4_000),
]


def test_only_the_text_of_old_results_is_left_out() -> None:
    """R02: cutting between a request and its result kills the session for good."""
    conversation = talk(*ROUNDS)
    assert conversation.shorten(2_000) == 2
    left = conversation.request()
    assert problems(left) == []
    assert [[type(block) for block in message.blocks] for message in left] == [
        [type(b) for b in m.blocks] for m in ROUNDS
    ]
    texts = [message.blocks[0].text[:60] for message in left if isinstance(message.blocks[0], ToolResult)]
    note = "[an earlier result of 4000 characters was left out to save s"
    assert texts == [note, note, "z" * 60]
    assert list(conversation.messages) == ROUNDS, "the history itself stays whole"


def test_enough_is_left_out_that_it_does_not_happen_at_every_round() -> None:
    conversation = talk(*ROUNDS)
    conversation.shorten(2_999)
    assert conversation.tokens < 0.6 * 2_999


def test_a_request_that_fits_is_left_alone() -> None:
    conversation = talk(*ROUNDS)
    assert (conversation.shorten(conversation.tokens), conversation.elided) == (0, 0)


def test_the_last_round_is_spared_until_its_prompt_is_over() -> None:
    """The model has not read it yet. Behind the next prompt it is old like the others."""
    conversation = talk(*ROUNDS)
    assert conversation.shorten(10) == 2
    assert conversation.shorten(10) == 0
    assert conversation.shorten(10, spare_last_round=False) == 1


def test_what_the_user_and_the_host_said_stays() -> None:
    """R02, second variant: one message holds a result and text."""
    conversation = talk(
        user("u" * 4_000), asks("a"), answers("a", text="x" * 4_000, more="keep me" * 200), asks("b"), answers("b")
    )
    conversation.shorten(10)
    left = conversation.request()
    assert left[0] == user("u" * 4_000)
    assert left[2].text == "keep me" * 200


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 2_000)), min_size=1, max_size=8))
def test_a_reopened_conversation_has_the_same_view(steps: list[tuple[int, int]]) -> None:
    """The provider's cache, the recording and the token count all hang on it. R25, contract 5.12."""
    conversation = talk(user())
    for n, (size, limit) in enumerate(steps):
        conversation.append(asks(f"c{n}"))
        conversation.append(answers(f"c{n}", text="x" * size))
        conversation.shorten(limit)
    again = talk(*conversation.messages)
    again.elide_to(conversation.elided)
    assert again.request() == conversation.request()
    assert (again.tokens, again.digest) == (conversation.tokens, conversation.digest)


def test_the_estimate_counts_every_text() -> None:
    history = [user("u" * 40), asks("a"), answers("a", text="r" * 40, more="m" * 40)]
    assert talk(*history).tokens == (40 + len("t{}") + 40 + 40) // 4
    assert tokens_of(user("u" * 40)) == 10


# Ids


@given(
    st.lists(st.sampled_from(["", "a", "a_2", "b", "call_0"]), max_size=8),
    st.sets(st.sampled_from(["a", "a_2", "call_0"])),
)
def test_ids_become_unique_by_a_stable_suffix(ids: list[str], taken: set[str]) -> None:
    """R07: providers repeat ids, within a message and between turns, and refuse a history that does."""
    uses = [ToolUse(call_id=call_id, name=f"n{n}", arguments="{}") for n, call_id in enumerate(ids)]
    renamed = with_unique_ids(uses, taken)
    made = [use.call_id for use in renamed]
    assert len(set(made)) == len(made)
    assert taken.isdisjoint(made)
    assert "" not in made
    assert [(use.name, use.arguments) for use in renamed] == [(use.name, use.arguments) for use in uses]
    assert renamed == with_unique_ids(uses, taken)
    for use, new in zip(uses, renamed, strict=True):
        if (
            ids.count(use.call_id) == 1
            and use.call_id
            and use.call_id not in taken
            and use.call_id not in made[: int(use.name[1:])]
        ):
            assert new == use


# Lost calls


def test_lost_calls_are_answered_with_what_their_receipts_know() -> None:
    """R01 and contract 5.5: four ends, none turned into another."""
    states: dict[str, ReceiptState | None] = {
        "nothing on record": None,
        "admitted": ReceiptState.ADMITTED,
        "never began": ReceiptState.NOT_STARTED,
        "started": ReceiptState.STARTED,
        "uncertain": ReceiptState.UNCERTAIN,
        "succeeded": ReceiptState.SUCCEEDED,
        "failed": ReceiptState.FAILED,
    }
    asked = asks(*states)
    message = answers_for_lost_calls(asked.tool_uses, {key: value for key, value in states.items() if value})
    conversation = talk(user(), asked, message)
    assert problems(conversation.request()) == []
    told = {block.call_id: block for block in message.blocks if isinstance(block, ToolResult)}
    assert all(block.is_error for block in told.values())
    for name, words in {
        "nothing on record": "No effect of it is on record",
        "admitted": "not started",
        "never began": "not started",
        "started": "unknown. Look before you do it again",
        "uncertain": "unknown. Look before you do it again",
        "succeeded": "succeeded, and is not to be repeated",
        "failed": "had no effect",
    }.items():
        assert words in told[name].text


def test_the_hosts_words_are_marked_as_its_own() -> None:
    """A04: nothing that a tool prints can take this mark."""
    (block,) = host_message("do better").blocks
    assert block == TextBlock(text="do better", origin=Origin.HOST)


def test_what_is_appended_is_what_is_stored() -> None:
    conversation = Conversation()
    with contextlib.suppress(IllFormed):
        conversation.append(says())
    assert conversation.append(user("정확도")) == encode_message(user("정확도"))
