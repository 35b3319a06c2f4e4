"""What an adapter adds to a call: its own time over the bare SDK's, and how many calls at once it lets through.

The strict double serves from another process. Both sides send the same bodies and read the same stream, of about fifty
events; the bare side only iterates over it, ours goes through the owner of retries, puts the reply together, keeps it
word for word and counts its cost. It hands on the JSON of an event, where the SDK makes an object of it, and so can
come out below. Calls of both sides alternate, so that what else runs on the machine hits both alike.

One call alone carries a history of ten tool rounds. Of the many at once each carries a prompt: the double, which checks
every body, would else be what is measured, and may still be the slower part. So a ratio of CPU time stands beside.

    python benchmarks/adapters.py [--calls 100] [--rounds 3]
"""

import argparse
import asyncio
import gc
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import anthropic
import openai

from geode.dev.fake_provider.script import Call, Script, Step, Thinking
from geode.dev.fake_provider.server import FakeProvider
from geode.llm import anthropic as messages
from geode.llm import chat_completions, openai_responses
from geode.llm.binding import Binding
from geode.llm.chat_dialects import DIALECTS
from geode.llm.messages import LLMAdapter, Message, Speaker, StepSnapshot, TextBlock, ToolResult, ToolSchema
from geode.llm.prices import Prices
from geode.llm.retry import Retrying, RetryPolicy
from geode.llm.routes import Route, parse_model

OVERHEAD_MS_MAX = 1.0
THROUGHPUT_MIN = 0.9
LATENCY_MS = 50
AT_ONCE = 200
EACH = 3
HISTORY_ROUNDS = 10
NO_RETRIES = RetryPolicy(requests=1)
PRICES = Prices(input=4, output=20, as_of="2026-12-01", source="a benchmark")
REPLY = Step(
    thinking=(Thinking(text="What is there is to be looked at before it is changed. " * 4),),
    text="I look at the file, and then at what calls it. " * 10,
    calls=(Call(name="look", arguments={"path": "/workspace/src/part.py", "lines": [1, 200]}),),
)
TOOLS = tuple(
    ToolSchema(
        name=name,
        description=f"The tool {name}: it does what it says. " * 5,
        input_schema={"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "array"}}},
    )
    for name in ("look", "write", "search", "run", "list", "ask")
)
_SDK_KNOWS = ("model", "messages", "tools", "stream", "max_tokens", "tool_choice", "temperature")

Ask = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two ways to make the same call."""

    bare: Ask
    ours: Ask


def serve(port: Connection, latency_ms: int) -> None:
    """Be the provider, until the pipe is closed."""
    with FakeProvider(Script(then=REPLY, latency_ms=latency_ms)) as double:
        port.send({route: (double.base_url(route), double.key(route)) for route in Route if route in WIRES})
        port.poll(None)


@asynccontextmanager
async def bare_anthropic(binding: Binding, snapshot: StepSnapshot) -> AsyncIterator[Ask]:
    body = messages.request_body(binding, snapshot)
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(
        api_key=binding.key, base_url=binding.base_url, timeout=binding.timeout_s, max_retries=0, http_client=http
    ) as client:

        async def ask() -> None:
            async for _ in await client.messages.create(**body):
                pass

        yield ask


@asynccontextmanager
async def bare_openai(binding: Binding, create: str, body: Mapping[str, Any]) -> AsyncIterator[Ask]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(
        api_key=binding.key, base_url=binding.base_url, timeout=binding.timeout_s, max_retries=0, http_client=http
    ) as client:
        make: Any = client.responses.create if create == "responses" else client.chat.completions.create

        async def ask() -> None:
            async for _ in await make(**body):
                pass

        yield ask


def bare_responses(binding: Binding, snapshot: StepSnapshot) -> Any:
    return bare_openai(binding, "responses", openai_responses.request_body(binding, snapshot))


def bare_chat(binding: Binding, snapshot: StepSnapshot) -> Any:
    body = chat_completions.request_body(binding, DIALECTS[binding.model.route], snapshot)
    known = {name: body[name] for name in _SDK_KNOWS if name in body}
    more = {name: value for name, value in body.items() if name not in known}
    return bare_openai(binding, "chat", known | {"extra_body": more})


WIRES: Mapping[Route, tuple[str, Callable[[Binding], LLMAdapter], Callable[[Binding, StepSnapshot], Any]]] = {
    Route.ANTHROPIC: ("claude-opus-5-5", messages.AnthropicMessages, bare_anthropic),
    Route.OPENAI: ("gpt-6-sol", openai_responses.OpenAIResponses, bare_responses),
    Route.OPENROUTER: ("google/gemini-3-pro", chat_completions.ChatCompletions, bare_chat),
    Route.ZAI: ("glm-5.3", chat_completions.ChatCompletions, bare_chat),
}


def snapshot_of(history: tuple[Message, ...]) -> StepSnapshot:
    return StepSnapshot(
        session_id="01BENCHMARK",
        turn=1,
        round=len(history),
        model="a/model",
        system="You work in /workspace, with care. " * 20,
        messages=history,
        tools=TOOLS,
        plan_hash="p",
        plan_generation=1,
        max_output_tokens=4_000,
        history_digest="d",
    )


async def a_history(adapter: LLMAdapter, rounds: int) -> StepSnapshot:
    """Hold a conversation of some rounds; its assistant messages are kept word for word, as in a session."""
    history: tuple[Message, ...] = (Message(role=Speaker.USER, blocks=(TextBlock(text="Mend the part. " * 20),)),)
    for _ in range(rounds):
        response = await adapter.acomplete(snapshot_of(history))
        said = Message(role=Speaker.ASSISTANT, blocks=response.blocks, raw=response.raw)
        results = tuple(ToolResult(call_id=use.call_id, text="a line of a file\n" * 50) for use in said.tool_uses)
        history = (*history, said, Message(role=Speaker.USER, blocks=results))
    return snapshot_of(history)


@asynccontextmanager
async def opened(route: Route, base_url: str, key: str, *, rounds: int) -> AsyncIterator[Sides]:
    model_id, make, bare = WIRES[route]
    binding = Binding(
        model=parse_model(f"{route}/{model_id}"),
        key=key,
        base_url=base_url,
        served_as=frozenset({model_id}),
        context_tokens=1_000_000,
        output_tokens_max=64_000,
        prices=PRICES,
    )
    adapter = Retrying(inner=make(binding), binding=binding, policy=NO_RETRIES)
    snapshot = await a_history(adapter, rounds)
    async with bare(binding, snapshot) as ask:
        yield Sides(bare=ask, ours=lambda: adapter.acomplete(snapshot))


async def overhead(sides: Sides, calls: int) -> dict[str, float]:
    """Return the medians of wall and CPU time of a call, in milliseconds: of both sides, and of what ours adds."""
    spent: dict[str, list[tuple[float, float]]] = {"bare": [], "ours": []}
    for turn in range(calls + 10):
        for name, ask in (
            (("bare", sides.bare), ("ours", sides.ours))
            if turn % 2
            else (
                ("ours", sides.ours),
                ("bare", sides.bare),
            )
        ):
            wall, cpu = time.perf_counter(), time.process_time()
            await ask()
            spent[name].append(((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000))
    warm = {name: figures[10:] for name, figures in spent.items()}
    pairs = list(zip(warm["bare"], warm["ours"], strict=True))
    return {
        "bare wall": median(wall for wall, _ in warm["bare"]),
        "bare CPU": median(cpu for _, cpu in warm["bare"]),
        "added wall": median(ours[0] - bare[0] for bare, ours in pairs),
        "added CPU": median(ours[1] - bare[1] for bare, ours in pairs),
    }


async def calls_a_second(ask: Ask) -> tuple[float, float]:
    """Return the throughput of many callers at once, and the CPU time of this process for each call in milliseconds."""

    async def caller() -> None:
        for _ in range(EACH):
            await ask()

    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    calls = AT_ONCE * EACH
    return calls / (time.perf_counter() - began), (time.process_time() - cpu) * 1000 / calls


async def throughput(sides: Sides, rounds: int) -> tuple[float, float, float]:
    """Return the bare SDK's throughput, and what share of it, and of its CPU time, ours has in the same round.

    Each is the median over all rounds.
    """
    await calls_a_second(sides.bare)
    await calls_a_second(sides.ours)
    bare, shares, cpu = list[float](), list[float](), list[float]()
    for turn in range(rounds):
        order = (sides.bare, sides.ours) if turn % 2 else (sides.ours, sides.bare)
        found = {ask: await calls_a_second(ask) for ask in order}
        bare.append(found[sides.bare][0])
        shares.append(found[sides.ours][0] / found[sides.bare][0])
        cpu.append(found[sides.ours][1] / found[sides.bare][1])
    return median(bare), median(shares), median(cpu)


async def measured(quick: Mapping[Route, tuple[str, str]], slow: Mapping[Route, tuple[str, str]], args: Any) -> bool:
    held = True
    print(f"{'wire':<12} {'bare call':>20} {'ours adds':>20}   {AT_ONCE} at once, {LATENCY_MS} ms: bare, ours")
    for route in WIRES:
        async with opened(route, *quick[route], rounds=HISTORY_ROUNDS) as sides:
            ms = await overhead(sides, args.calls)
        async with opened(route, *slow[route], rounds=0) as sides:
            rate, share, cpu = await throughput(sides, args.rounds)
        held = held and ms["added CPU"] <= OVERHEAD_MS_MAX and share >= THROUGHPUT_MIN
        alone = f"{ms['bare wall']:6.2f} ms, CPU {ms['bare CPU']:5.2f}"
        added = f"{ms['added wall']:+6.2f} ms, CPU {ms['added CPU']:+5.2f}"
        print(f"{route:<12} {alone} {added}   {rate:6.0f}/s, {share:.0%}, {cpu:.0%} of its CPU", flush=True)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe() for _ in range(2)]
    servers = [
        spawn.Process(target=serve, args=(there, latency_ms), daemon=True)
        for (_, there), latency_ms in zip(pipes, (0, LATENCY_MS), strict=True)
    ]
    for server in servers:
        server.start()
    held = asyncio.run(measured(*(here.recv() for here, _ in pipes), args))
    for (here, _), server in zip(pipes, servers, strict=True):
        here.send("end")
        server.join(10)
    print(
        f"{'held' if held else 'MISSED'}: at most {OVERHEAD_MS_MAX:g} ms of CPU a call, and at least"
        f" {THROUGHPUT_MIN:.0%} of the bare SDK's throughput"
    )
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
