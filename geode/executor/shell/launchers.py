"""What a simple command starts beside itself: programs that run programs, and options that make them do so.

A list like this spares a prompt where it is sure, and asks where it is not. It is no boundary: a program that is
missing here may still run another one. The boundary is the sandbox.
"""

from collections.abc import Sequence

from geode.executor.shell.carriers import CARRIERS, read_carrier
from geode.executor.shell.hazards import CANNOT_BE_READ, HAZARDS, check_hazards
from geode.executor.shell.readers import READERS
from geode.executor.shell.started import Started, program_of
from geode.executor.shell.syntax import Word


def started_by(words: Sequence[Word], sets: Sequence[str] = ()) -> Started:
    """Say what the command `words` starts, with the variables `sets` set for it."""
    started = Started()
    for variable in sets:
        started.sets(variable)
    program = program_of(words[0])
    if program is None:
        return started.doubt("the program is named by an expansion")
    name = program.rsplit("/", 1)[-1]
    if why := CANNOT_BE_READ.get(name):
        return started.doubt(f"{name} {why}")
    if name.startswith(("ld-linux", "ld-musl")):
        return started.doubt(f"{name} runs what it is given")
    if (options := CARRIERS.get(name)) is not None:
        read_carrier(name, options, words, started)
    elif (reader := READERS.get(name)) is not None:
        reader(name, words, started)
    elif (hazards := HAZARDS.get(name)) is not None:
        check_hazards(name, hazards, words[1:], started)
    if "/" in program:
        started.carrier = False  # it only has the name of one
    return started
