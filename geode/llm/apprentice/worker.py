"""The apprentice at work on an outline: its state is what the messages tell, its next action follows from it.

`read` folds one message into the state; `act` decides and changes nothing. The state holds no more than a reader of the
same messages could know, and each draw is a function of the key and of what is drawn. Hence a session that is resumed
from its messages goes on exactly as it would have.

The work goes in passes. The first walks along the outline. A failing check, or an answer that is sent back, opens the
next one, which only mends: it takes wrong edits back, does what is missing, and checks again.
"""

from geode.llm.apprentice.faults import Effect, FaultName, FaultTable, Where
from geode.llm.apprentice.hearing import Dice, Hearing, StepKind
from geode.llm.apprentice.moves import Action, Form, Move, Repertoire, same_call
from geode.llm.messages import Message, Origin, Speaker, TextBlock, ToolResult
from geode.llm.outline import OutlineStep

_QUOTED_CHARS = 160


class Worker:
    """One session's apprentice with an outline."""

    def __init__(self, *, repertoire: Repertoire, table: FaultTable, dice: Dice, hearing: Hearing) -> None:
        self._moves = repertoire
        self._bounds = table.bounds
        self._dice = dice
        self._hearing = hearing
        self._pass = 0
        self._mending = False
        self._cursor = 0  # the next step to consider in this pass
        self._tries: dict[int, int] = {}  # by step, in this pass
        self._resend_fails: float | None = None  # set when the last arguments were refused as malformed
        self._must_check = False
        self._stuck: Move | None = None
        self._done: dict[int, Move] = {}  # what stands in the workspace, by step, as far as results told
        self._not_undone: set[int] = set()
        self._shown_the_place: set[int] = set()
        self._spares_checks = False
        self._failing = ""  # what the last check said, if the apprentice took it for a failure
        self._fixes = 0
        self._sent_back = 0
        self._rounds = 0
        self._note = ""
        self._open: dict[str, Move] = {}
        self._answered = False
        self._planned: tuple[Action, tuple[Move, ...]] | None = None

    # --- reading ---

    def read(self, message: Message) -> None:
        """Take in the next message of the conversation."""
        if message.role is Speaker.ASSISTANT:
            self._read_own(message)
        else:
            self._read_host(message)
        self._planned = None

    def _read_own(self, message: Message) -> None:
        _, planned = self._plan()
        self._note = ""
        self._rounds += 1
        self._resend_fails = None
        self._stuck = None
        uses = message.tool_uses
        self._answered = not uses
        self._open = {}
        for position, use in enumerate(uses):
            intended = planned[position] if position < len(planned) else None
            if intended is None or not same_call(intended.call, use):
                # The history is not exactly what led here (results were left out since, or another model wrote it).
                intended = self._moves.recognise(use, self._cursor) or intended
            if intended is not None:
                self._open[use.call_id] = intended
                self._cursor = intended.step + 1
                if intended.form is not Form.UNDO:
                    self._tries[intended.step] = self._tries.get(intended.step, 0) + 1

    def _read_host(self, message: Message) -> None:
        for block in message.blocks:
            if isinstance(block, ToolResult) and (move := self._open.pop(block.call_id, None)):
                self._read_result(move, block)
        if self._answered:
            self._answered = False
            self._read_demand(message.text)
            return
        for block in message.blocks:
            if isinstance(block, TextBlock) and block.origin is Origin.HOST:
                self._hearing.hear(Where.CONTEXT, block.text)

    def _read_demand(self, text: str) -> None:
        """The answer came back. Without words that say what to do, all that is left is to answer again."""
        self._sent_back += 1
        self._rounds = 0
        self._fixes = 0
        self._hearing.hear(Where.REPAIR, text)
        self._begin_to_mend(len(self._moves.steps))
        cue = self._hearing.effect(Effect.RUN_THE_CHECK, FaultName.SKIP_CHECK, Where.REPAIR, text)
        if cue and self._moves.verdicts and self._succeeds(cue.fails, "obey", self._pass):
            self._cursor = self._moves.verdicts[-1]
            self._must_check = True
            self._note = "I run the check."

    def _read_result(self, move: Move, result: ToolResult) -> None:
        step = self._moves.steps[move.step]
        if move.form is Form.MALFORMED:
            self._after_malformed(move, result)
        elif move.form is Form.UNDO:
            self._after_undo(move, result)
        elif self._stays_stuck(move, result):
            self._stuck = move
        elif step.kind == "change":
            self._after_change(move, result)
        elif move.step in self._moves.verdicts:
            self._after_check(step, move.step, result)

    def _after_malformed(self, move: Move, result: ToolResult) -> None:
        cue = self._hearing.effect(Effect.CORRECT_AND_RESEND, FaultName.MALFORMED_ARGUMENTS, Where.RESULT, result.text)
        if cue and result.is_error and self._tries[move.step] < self._bounds.attempts:
            self._resend_fails = cue.fails
            self._cursor = move.step

    def _after_undo(self, move: Move, result: ToolResult) -> None:
        self._cursor = move.step
        if result.is_error:
            self._not_undone.add(move.step)
        else:
            self._done.pop(move.step, None)

    def _stays_stuck(self, move: Move, result: ToolResult) -> bool:
        kind, tries = self._kind(move), self._tries[move.step]
        if not self._strikes(FaultName.GET_STUCK, kind, move.step, self._pass):
            return False
        cue = self._hearing.effect(Effect.LEAVE_THE_LOOP, FaultName.GET_STUCK, Where.RESULT, result.text)
        if cue and self._succeeds(cue.fails, "leave", move.step, self._pass, tries):
            self._note = "This tells nothing new. I go on."
            return False
        return True

    def _after_change(self, move: Move, result: ToolResult) -> None:
        if not result.is_error:
            self._done[move.step] = move
            return
        in_check = move.form is Form.WRONG and move in self._moves.wrong(move.step, in_check=True)
        if move.form is Form.WRONG:
            fault = FaultName.EDIT_THE_CHECK if in_check else FaultName.EDIT_ELSEWHERE
            cue = self._hearing.effect(Effect.TAKE_THE_RIGHT_PLACE, fault, Where.RESULT, result.text)
            if cue and self._succeeds(cue.fails, "right_place", move.step, self._pass, self._tries[move.step]):
                self._spares_checks |= in_check
                self._shown_the_place.add(move.step)
                self._cursor = move.step
                self._note = "That was the wrong place. I make the change where it belongs."
        elif self._tries[move.step] <= self._bounds.retries and not self._told_to_leave(result):
            self._cursor = move.step

    def _after_check(self, step: OutlineStep, index: int, result: ToolResult) -> None:
        self._must_check = False
        passed = step.passes_when in result.text if step.passes_when is not None else not result.is_error
        if passed or self._strikes(FaultName.MISREAD_CHECK, "check", index, self._pass, result=result.text):
            self._failing = ""
            return
        if result.is_error and self._told_to_leave(result):
            return  # the check did not run, so there is nothing new to know
        lines = [line for line in result.text.splitlines() if line.strip()] or ["no output"]
        self._failing = lines[-1].strip()[:_QUOTED_CHARS]
        self._begin_to_mend(0 if self._fixes < self._bounds.fix_passes else len(self._moves.steps))
        self._fixes += 1
        self._note = "The check fails. I go over my changes."

    def _begin_to_mend(self, cursor: int) -> None:
        self._pass += 1
        self._mending = True
        self._cursor = cursor
        self._tries = {}
        self._must_check = False
        self._not_undone.clear()

    def _told_to_leave(self, result: ToolResult) -> bool:
        return bool(self._hearing.effect(Effect.LEAVE_THE_LOOP, FaultName.GET_STUCK, Where.RESULT, result.text))

    # --- acting ---

    def act(self) -> Action:
        """Return what the apprentice does in answer to the messages read so far."""
        return self._plan()[0]

    def _plan(self) -> tuple[Action, tuple[Move, ...]]:
        if self._planned is None:
            moves = self._next_moves()
            action = (
                Action(calls=tuple(move.call for move in moves), says=self._note)
                if moves
                else Action(says=self._answer())
            )
            self._planned = (action, moves)
        return self._planned

    def _next_moves(self) -> tuple[Move, ...]:
        if self._spent:
            return ()
        if self._stuck is not None:
            return (self._stuck,)
        for index in range(self._cursor, len(self._moves.steps)):
            if self._claims_success_before(index):
                break
            if move := self._move_at(index):
                return (move, *self._looks_beside(move))
        return ()

    @property
    def _spent(self) -> bool:
        return self._sent_back > self._bounds.sent_back or self._rounds >= self._bounds.rounds

    def _claims_success_before(self, index: int) -> bool:
        kind = self._moves.steps[index].kind
        begun = any(self._moves.steps[done].kind == "change" for done in range(index))
        return (
            begun
            and not self._mending
            and index not in self._tries
            and self._strikes(FaultName.CLAIM_EARLY, kind, index)
        )

    def _move_at(self, index: int) -> Move | None:
        match self._moves.steps[index].kind:
            case "inspect":
                move = self._look(index)
            case "change":
                move = self._change(index)
            case "check":
                move = self._check(index)
        if move is None or move.form is Form.UNDO:
            return move
        tries = self._tries.get(index, 0)
        rate = self._resend_fails
        if rate is None:
            rate = self._hearing.rate(FaultName.MALFORMED_ARGUMENTS, self._kind(move)) if tries == 0 else 0.0
        if self._dice.uniform(FaultName.MALFORMED_ARGUMENTS, index, self._pass, tries) < rate:
            return self._moves.spoil(move, self._dice.uniform("spoil", index, self._pass, tries))
        return move

    def _look(self, index: int) -> Move | None:
        again = index in self._tries
        if not again and (self._mending or self._strikes(FaultName.OMIT_STEP, "inspect", index)):
            return None
        return self._moves.right(index)

    def _change(self, index: int) -> Move | None:
        if index not in self._tries:
            stands = self._done.get(index)
            if stands is not None and stands.form is Form.RIGHT:
                return None
            leave_out = FaultName.OVERLOOK if self._mending else FaultName.OMIT_STEP
            if self._strikes(leave_out, "change", index, self._pass):
                return None
            if stands is not None and index not in self._not_undone and (undo := self._undo(stands)):
                return undo
        return self._wrong_change(index) or self._moves.right(index)

    def _undo(self, stands: Move) -> Move | None:
        return self._moves.undo(stands.step, stands.alternative)

    def _wrong_change(self, index: int) -> Move | None:
        if index in self._shown_the_place:
            return None
        for fault in (FaultName.EDIT_THE_CHECK, FaultName.EDIT_ELSEWHERE):
            in_check = fault is FaultName.EDIT_THE_CHECK
            moves = self._moves.wrong(index, in_check=in_check)
            spared = in_check and self._spares_checks
            if moves and not spared and self._strikes(fault, "change", index, self._pass):
                return moves[self._dice.pick(len(moves), "which", fault, index, self._pass)]
        return None

    def _check(self, index: int) -> Move | None:
        is_verdict = index in self._moves.verdicts
        if index in self._tries or self._must_check:
            return self._moves.right(index)
        if self._mending:
            # To check again without having changed anything tells nothing new.
            return self._moves.right(index) if is_verdict and self._tries else None
        return None if self._strikes(FaultName.SKIP_CHECK, "check", index) else self._moves.right(index)

    def _looks_beside(self, first: Move) -> tuple[Move, ...]:
        """Further inspecting calls that can be sent in the same round."""
        if self._kind(first) != "inspect" or first.form is not Form.RIGHT or first.step in self._tries:
            return ()
        beside: list[Move] = []
        for index in range(first.step + 1, len(self._moves.steps)):
            if self._moves.steps[index].kind != "inspect" or len(beside) + 1 >= self._bounds.looks_at_once:
                break
            if move := self._move_at(index):
                if move.form is not Form.RIGHT:
                    break
                beside.append(move)
        return tuple(beside)

    def _answer(self) -> str:
        if self._spent:
            return f"I can do no more on this; what I did stands as it is. {self._state_of_the_check()}".rstrip()
        if self._failing:
            return f"I could not finish this. {self._state_of_the_check()}"
        if self._sent_back and not self._tries:
            return f"My answer stands: {self._moves.answer}"
        return self._moves.answer

    def _state_of_the_check(self) -> str:
        return f"The check still fails, and I did not find why. Its last line: {self._failing}" if self._failing else ""

    # --- chance ---

    def _strikes(self, fault: FaultName, kind: StepKind, *what: int, result: str | None = None) -> bool:
        rate = self._hearing.rate(fault, kind, result)
        return rate > 0 and self._dice.uniform(fault, *what) < rate

    def _succeeds(self, fails: float, *what: str | int) -> bool:
        return self._dice.uniform(*what) >= fails

    def _kind(self, move: Move) -> StepKind:
        return self._moves.steps[move.step].kind
