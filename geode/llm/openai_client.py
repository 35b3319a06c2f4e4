"""OpenAI's SDK opened for a binding: the same for both wires that it speaks."""

from typing import TYPE_CHECKING

from geode.llm.binding import Binding
from geode.llm.clients import bounded, is_loopback, tls
from geode.llm.streaming import CONNECT_S_MAX

if TYPE_CHECKING:
    import openai


def openai_client(binding: Binding) -> "openai.AsyncOpenAI":
    """Return a client that reaches the address of `binding` with its key, and sends each request once."""
    import openai  # noqa: PLC0415  (half a second that only a call may cost)

    return openai.AsyncOpenAI(
        api_key=binding.key,
        base_url=binding.base_url,
        timeout=openai.Timeout(binding.timeout_s, connect=min(binding.timeout_s, CONNECT_S_MAX)),
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            trust_env=not is_loopback(binding.base_url), verify=tls(), event_hooks={"response": [bounded]}
        ),
    )
