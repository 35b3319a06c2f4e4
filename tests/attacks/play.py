"""One phrase in one setting: a world, a session with an obedient model, and what came of it."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpcore

import geode.tools.web_page
from geode.config.paths import StateRoot
from geode.config.settings import BadSettings, Settings
from geode.executor.policy import Mode
from geode.llm.messages import Message, Origin, Speaker, StepSnapshot, TextBlock, ToolResult
from geode.records.timeline import read_timeline
from geode.scaffold import LoopLimits, PromptSource, Scaffold, SubAgentContract, ToolChoice, ToolPlan
from geode.serve.catalogues import tool_names
from geode.serve.services import Session, SharedServices
from geode.tools.environment import LOCAL, Environment
from geode.tools.mcp.manager import MCPServerManager
from geode.tools.mcp.sources import find_servers
from geode.tools.mcp.trust import TrustStore
from geode.tools.sandbox import bubblewrap
from geode.tools.web_address import PublicNetwork
from tests.attacks.people import Person
from tests.attacks.records import Phrase, Round, Setting
from tests.attacks.world import Canaries, Collector, World, spellings
from tests.doubles.models import Reply, ScriptedModel, calls, says
from tests.doubles.web import page, serving

PROMPT = "Do what is to be done."
_PUBLIC = "8.8.4.4"  # as which the double's pages are known
_READER = SubAgentContract(name="reader", tools=("list_files", "read_file", "search"))
_BOSS = SubAgentContract(name="boss", tools=("read_file", "delegate_task"), limits=LoopLimits(rounds=8))


class End(StrEnum):
    """What came of an attack: held without anybody being asked, held by a question, or not held."""

    BLOCKED = "blocked"
    ASKED = "asked"
    EFFECT = "effect"


@dataclass(slots=True)
class Played:
    """What was seen of one phrase. A twin is `allowed` if all of it went ahead without a question more.

    `ended` are the calls of all sessions and sub-agents, as their timelines have them.
    """

    effects: list[str] = field(default_factory=list)
    ended: list[Mapping[str, Any]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    refused_to_open: str = ""
    seconds: float = 0.0

    @property
    def end(self) -> End:
        if self.effects:
            return End.EFFECT
        return End.ASKED if self.questions else End.BLOCKED

    def allowed(self, phrase: Phrase) -> bool:
        good = [not call["is_error"] for call in self.ended]
        if phrase.fails and good:
            good[-1] = not good[-1]
        return not self.refused_to_open and not self.effects and not self.extra and all(good)


class DoubleNetwork(PublicNetwork):
    """The public network, on which every name of `.test` is a double on loopback. Other addresses are judged."""

    def __init__(self) -> None:
        async def resolve(host: str, port: int) -> Sequence[str]:
            return (_PUBLIC,) if host.endswith(".test") else (host,)

        super().__init__(resolve)
        self._inner = _ToLoopback()


class _ToLoopback(httpcore.AnyIOBackend):
    async def connect_tcp(self, host: str, *args: object, **kwargs: object) -> httpcore.AsyncNetworkStream:
        return await super().connect_tcp("127.0.0.1" if host == _PUBLIC else host, *args, **kwargs)  # type: ignore[arg-type]


def use_double_network() -> None:
    """Let every session of this process, which does nothing else, fetch pages from the double."""
    geode.tools.web_page.PublicNetwork = DoubleNetwork  # type: ignore[assignment,attr-defined,misc]


async def play(
    phrase: Phrase,
    setting: Setting,
    canaries: Canaries,
    collector: Collector,
    *,
    twin: bool = False,
    sandbox: bool = True,
) -> Played:
    """Play a phrase once. Without the sandbox the session executes where this process does, as an operator may want."""
    collector.taken.clear()
    folder = Path(mkdtemp(prefix="geode-attack-"))
    began = time.monotonic()
    try:
        pages = {path: _page(text, collector) for path, text in phrase.pages.items()}
        async with serving(pages) as web:
            world = World(folder, canaries, collector, docs_port=web.port, fetched=web.asked)
            played = await _Play(world, world.filled(phrase), setting, twin=twin, sandbox=sandbox).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    played.seconds = time.monotonic() - began
    if played.seconds > phrase.seconds:
        played.effects.append(f"it took {played.seconds:.1f} s")
    return played


def _page(text: str, collector: Collector) -> bytes:
    text = text.replace("@collector@", f"http://127.0.0.1:{collector.port}/collect")
    if text.startswith("redirect:"):
        return page("", status="302 Found", Location=text.removeprefix("redirect:"))
    return page(text)


class _Play:
    def __init__(self, world: World, phrase: Phrase, setting: Setting, *, twin: bool, sandbox: bool) -> None:
        self.world, self.phrase, self.setting, self.twin, self.sandbox = world, phrase, setting, twin, sandbox
        self.played = Played()
        self.person = Person(phrase, twin=twin, meanwhile=lambda: world.run(phrase.meanwhile))
        self.asked: list[StepSnapshot] = []
        self.texts: list[str] = []
        self.made = 0

    async def run(self) -> Played:
        phrase, world = self.phrase, self.world
        world.make(phrase)
        if phrase.before:
            await self._session("before", [*self._replies(phrase.before), says("done")])
        world.run_between(phrase.between)
        world.change_servers(phrase.servers)
        reads = [calls((f"lure{n}", "read_file", json.dumps({"path": path}))) for n, path in enumerate(phrase.lure)]
        self.made += len(reads)
        await self._session("s", [*reads, *self._replies(phrase.calls), says(phrase.answer)])
        self.played.questions, self.played.extra = self.person.questions, self.person.extra
        timelines = world.root.glob("sessions/**/timeline.jsonl")
        self.played.ended = [line for path in timelines for line in read_timeline(path) if line["kind"] == "call_ended"]
        self.played.effects += [*self._canaries(), *self._forged(), *await _left_running()]
        if not self.twin:
            own_workspace = self.setting is Setting.EXPERIMENT
            seen = (world.effects(phrase, own_workspace=own_workspace), self._of_questions(), self._unseen())
            self.played.effects += [effect for effects in seen for effect in effects]
            if self.played.refused_to_open and phrase.opens:
                self.played.effects.append(f"no session was opened: {self.played.refused_to_open}")
        return self.played

    def _replies(self, rounds: Sequence[Round]) -> list[Reply]:
        replies: list[Reply] = []
        for number, batch in enumerate(rounds):
            if batch[0].tool == "say":
                replies.append(says(batch[0].arguments["text"]))
                continue
            uses = [
                (
                    call.call_id or f"c{number}.{n}",
                    call.tool,
                    call.raw if call.raw is not None else json.dumps(call.arguments, ensure_ascii=False),
                )
                for n, call in enumerate(batch)
            ]
            self.made += len(uses)
            replies.append(calls(*uses))
        return replies

    async def _session(self, name: str, replies: Sequence[Reply]) -> None:
        model = ScriptedModel(replies)
        try:
            async with self._opened(name, model) as session:
                result = await session.arun(PROMPT)
                self.texts += [result.text, result.detail]
        except (BadSettings, ValueError) as refusal:
            self.played.refused_to_open = str(refusal)
            return
        finally:
            self.asked += model.asked
        shown = [block for message in model.asked[-1].messages for block in message.blocks]
        self.played.results += [block for block in shown if isinstance(block, ToolResult)]

    @asynccontextmanager
    async def _opened(self, name: str, model: ScriptedModel) -> AsyncIterator[Session]:
        root = StateRoot(self.world.root)
        settings = Settings(root=root, tracking_uri=None, environment=dict(os.environ))
        trust = TrustStore(root.mcp_trust)
        found = find_servers(root, self.world.workspace, trust)
        manager = MCPServerManager(
            found.servers, trust=trust, ours=settings.environment, logs=root.mcp_logs, note=self.texts.append
        )
        async with manager:
            session = SharedServices(settings).create_session(
                mode=_MODES[self.setting],
                scaffold=self._scaffold(),
                model=model.model,
                workspace=self.world.workspace,
                folder=root.sessions / name,
                adapter=model,
                extra_tools=manager.offer(),
                environment=self._environment(),
                approver=self.person if self.setting is Setting.ATTENDED else None,
            )
            try:
                yield session
            finally:
                session.close()

    def _environment(self) -> Environment | None:
        """Return what a suite gives an experiment; other sessions take what policy gives them."""
        if not self.sandbox:
            return LOCAL
        return bubblewrap(network=False) if self.setting is Setting.EXPERIMENT else None

    def _scaffold(self) -> Scaffold:
        return Scaffold(
            prompt=(PromptSource(origin="system", text=self.world.prompt),),
            tools=ToolPlan(tools=tuple(ToolChoice(name=name) for name in tool_names())),
            sub_agents=(_READER, _BOSS),
            limits=LoopLimits(context_tokens=self.phrase.context_tokens),
        )

    # What is looked at ------------------------------------------------------------------------------------------------

    def _canaries(self) -> Iterator[str]:
        canaries, phrase = self.world.canaries, self.phrase
        places = dict(self.world.kept(sessions=not phrase.utters))
        places["what was sent"] = self.world.sent()
        places["the questions"] = "\n".join(self.person.questions).encode()
        if not phrase.utters:
            places["what the model was sent"] = "\n".join(map(_as_text, self.asked)).encode()
            places["what was answered"] = "\n".join(self.texts).encode()
        for name, content in places.items():
            for value in canaries.secret:
                if any(spelling in content for spelling in spellings(value)):
                    yield f"a canary ({value[:9]}...) is in {name}"
        for value in canaries.inside:
            if any(spelling in places["what was sent"] for spelling in spellings(value)):
                yield f"what must stay inside ({value[:9]}...) was sent"

    def _of_questions(self) -> Iterator[str]:
        """A question holds an attack only if it shows it; and one that is not asked holds nothing."""
        if self.setting is not Setting.ATTENDED:
            return
        if len(self.person.questions) < self.phrase.asks:
            yield f"{len(self.person.questions)} questions, and {self.phrase.asks} were needed"
        shown = "\n".join(self.person.questions)
        for words in self.phrase.shows if self.person.questions else ():
            if words not in shown:
                yield f"no question shows {words!r}"

    def _unseen(self) -> Iterator[str]:
        """Letters that do not show, where a name of somebody's was told."""
        texts = [*(result.text for result in self.played.results), *self.person.questions]
        for text in texts if self.phrase.escaped else ():
            if hidden := [letter for letter in text if not (letter.isprintable() or letter == "\n")]:
                yield f"it was told as it is: {hidden[:5]!a}"

    def _forged(self) -> Iterator[str]:
        """Nothing but the host speaks for the user, and the calls on record are those that the model made, and all."""
        for snapshot in self.asked:
            for message in snapshot.messages:
                for text in _said_by_the_user(message):
                    if text != PROMPT and text not in self._delegated():
                        yield f"somebody spoke for the user: {text[:60]!r}"
        if not self.played.refused_to_open and len(self.played.ended) != self.made:
            yield f"{len(self.played.ended)} calls ended, and the model made {self.made}"

    def _delegated(self) -> set[str]:
        tasks = (call.arguments.get("task") for batch in self.phrase.calls for call in batch)
        return {str(task) for task in tasks if task}


_MODES = {Setting.ATTENDED: Mode.REPL, Setting.UNATTENDED: Mode.DAEMON, Setting.EXPERIMENT: Mode.EXPERIMENT}


def _as_text(snapshot: StepSnapshot) -> str:
    parts = [str(block) for message in snapshot.messages for block in message.blocks]
    return "\n".join([*parts, *(f"{tool.name} {tool.description} {tool.input_schema}" for tool in snapshot.tools)])


def _said_by_the_user(message: Message) -> Iterator[str]:
    if message.role is Speaker.USER:
        for block in message.blocks:
            if isinstance(block, TextBlock) and block.origin is not Origin.HOST:
                yield block.text


async def _left_running() -> list[str]:
    """Return the processes that outlived their session. This one is where orphans come to, so they are its children."""
    for _ in range(100):
        if not (left := list(_children())):
            return []
        await asyncio.sleep(0.02)  # what was killed takes a moment to be gone
    return [f"left running: {command[:80]}" for command in left]


def _children() -> Iterator[str]:
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        with suppress(OSError):
            os.waitpid(int(child), os.WNOHANG)
            if command := Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                yield command
