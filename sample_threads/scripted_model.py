"""A chat model that answers by script, and the pace of the stories: no key, no network, always the same answer."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

Reply = tuple[str, list[dict[str, Any]]]
"""What a line of a script returns: the text, and the tool calls."""

pace = float(os.environ.get("STUDIO_SAMPLE_PACE", "0.1"))
"""Real seconds slept per second of the story."""
sleep: Callable[[float], object] = time.sleep
"""How time passes; `build.py` puts a clock of its own here."""


def think(seconds: float) -> None:
    """Take the time that a model or a service would take."""
    sleep(seconds * pace)


class ScriptedModel(BaseChatModel):
    """Answers by script: the last message names a task and its facts as JSON."""

    script: dict[str, Callable[[dict[str, Any]], Reply]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        prompt = str(messages[-1].content)
        request = json.loads(prompt)
        text, calls = self.script[request["task"]](request)
        asked, answered = len(prompt) // 4, len(text) // 4 + 12 * len(calls)
        message = AIMessage(
            text,
            id=request["id"],
            tool_calls=calls,
            usage_metadata={"input_tokens": asked, "output_tokens": answered, "total_tokens": asked + answered},
            response_metadata={"model_name": "scripted-1"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def ask(self, task: str, messages: Sequence[BaseMessage] = (), seconds: float = 1.0, **facts: Any) -> AIMessage:
        """Ask for one line of the script; the reply's id is its place in the conversation."""
        think(seconds)
        request = {"task": task, "id": f"ai-{len(messages) + 1}", **facts}
        return self.invoke([SystemMessage("You answer by script."), HumanMessage(json.dumps(request, default=str))])
