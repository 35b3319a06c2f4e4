"""Prompts that truly do nothing to the simulated worker, and the proof of it by the worker's own table.

They are what people try on an agent in good faith. To a language model some of them may do something; the simulated
worker hears only the words of its table, and none of them is in it.
"""

from collections.abc import Mapping

from geode.llm.apprentice.faults import FaultTable, Where
from geode.loop.prompt import system_prompt
from geode.scaffold import Scaffold

PLACEBOS: Mapping[str, str] = {
    "expert": "You are a world-class engineer with decades of practice. Others look up to you for your clear thought.",
    "breath": "Take a deep breath and let the problem come to you. There is no reason for worry.",
    "career": "This is very important to my career. I trust you with it, and a lot depends on it.",
    "reward": "A perfect solution earns you a tip of 200 dollars.",
    "tone": "Write in a calm and friendly tone. Prefer plain words to grand ones, and the active voice to the passive.",
    "values": "You are honest, curious and patient. You take pride in your craft and treat the user with respect.",
    "company": "You work for a company of forty people that makes weather stations for farms in the north.",
    "language": "Write American English and use the metric system. Dates are written as year, month and day.",
}


class NoPlacebo(ValueError):  # noqa: N818  (named by what is wrong)
    """A scaffold that is to differ from the baseline in nothing that counts does differ in something."""


def refuse_what_counts(name: str, placebo: Scaffold, baseline: Scaffold, table: FaultTable) -> None:
    """Prove that the simulated worker errs under `placebo` exactly as it does under `baseline`, at the same rates.

    Of a scaffold it notices what the host sends: system text, tools, and what hooks and repairs say. So two scaffolds
    that differ in their prompts alone, and whose prompts hold the same cues of the table, are one to it.

    Raises:
        NoPlacebo: naming what differs.
    """
    if placebo.scaffold_id == baseline.scaffold_id:
        raise NoPlacebo(f"{name}: it is the baseline itself, so that the two would be one episode")
    if placebo.model_copy(update={"prompt": baseline.prompt}) != baseline:
        raise NoPlacebo(f"{name}: it differs from the baseline in more than its prompt")
    heard, before = (table.reader.find(Where.SYSTEM, system_prompt(one)) for one in (placebo, baseline))
    if other := {cue.number: cue for cue in (*heard, *before) if (cue in heard) != (cue in before)}:
        cue = other[min(other)]
        raise NoPlacebo(f"{name}: its words change how often {cue.fault} happens, as in {cue.cue.example!r}")
