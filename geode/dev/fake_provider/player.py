"""Which step comes next."""

import threading
from collections import deque

from geode.dev.fake_provider.agent import play
from geode.dev.fake_provider.script import Failure, Script, Step
from geode.dev.fake_provider.wire import Refused, Request, Wire
from geode.llm.routes import Route


class Player:
    """Gives out the steps of a script, each once, and the agent's where there is no script."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._lock = threading.Lock()
        self._all = deque(script.steps)
        self._by_route = {route: deque(steps) for route, steps in script.by_route.items()}
        self._by_model = {model: deque(steps) for model, steps in script.by_model.items()}

    def next(self, wire: Wire, request: Request) -> Step:
        """Return the step that answers `request`.

        Raises:
            Refused: if the script is used up.
        """
        if self.script.is_empty:
            return play(wire.asked(request.body))
        step = self.take(request.route, request.model)
        if step is None:
            note = "the script of the fake provider has no step left for this request"
            raise Refused(wire.refuse(Failure.BAD_REQUEST, request, note=note))
        return step

    def take(self, route: Route, model: str) -> Step | None:
        """Return the next step for this model on this route, or what follows for ever."""
        with self._lock:
            for queue in (self._by_model.get(model), self._by_route.get(route), self._all):
                if queue:
                    return queue.popleft()
        return self.script.then

    @property
    def left(self) -> int:
        """How many steps nobody has taken yet."""
        with self._lock:
            queues = (self._all, *self._by_route.values(), *self._by_model.values())
            return sum(len(queue) for queue in queues)
