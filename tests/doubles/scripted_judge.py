"""A judge engine whose replies are given as text, episode by episode, and read as any reply of a model is."""

import json
from collections.abc import Mapping

from judges.judgment import Asked, Judgment, Unscored, all_unscored, entries_of
from judges.rubric import Rubric
from judges.view import EpisodeView


class ScriptedJudge:
    """Implements `JudgeEngine`: `replies` holds the reply to each episode; one that is no JSON object is malformed."""

    name = "scripted"
    engine_id = "scripted-1"
    models = ("acme/judge",)

    def __init__(self, replies: Mapping[str, str]) -> None:
        self._replies = replies

    def question_set(self, rubric: Rubric) -> str:
        return f"of {rubric.rubric_id}"

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        reply = self._replies[view.episode]
        try:
            body = json.loads(reply)
        except ValueError:
            body = None
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=self.name,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions=entries_of(rubric, body)
            if isinstance(body, dict)
            else all_unscored(rubric, Unscored.PARSE_FAILURE, reply),
            asked=(Asked(engine=self.name, model="acme/judge", served_model="judge-1", reply=reply),),
        )
