"""What can go wrong between the loop and a model, named by what the caller can do.

LLMError
├── ConfigurationError      change the configuration; no request was sent
│   ├── RouteRefused        the route exists, this model or purpose is not admitted on it
│   └── CredentialMissing   set the variable that the text names
├── BudgetReached           a cap on spending would be passed; no request was sent
├── ProviderError           a request was sent; carries `Facts`, and whether the same request may succeed later
│   ├── ConnectionFailed    no reply came: no connection, or the time was up       retryable
│   ├── Overloaded          5xx, 529, or an event in the stream that says so       retryable
│   ├── RateLimited         too many requests for now                              retryable
│   ├── StreamCut           the reply ended before its last event                  retryable
│   ├── WaitTooLong         it may succeed later, but later than anybody waits
│   ├── AuthenticationFailed  the key is wrong, or may not do this
│   ├── PaymentRequired     credits, quota or plan: only a person changes that
│   ├── ContextTooLarge     send less
│   ├── RequestInvalid      the provider does not take such a request
│   └── ResponseInvalid     the provider answered, in a form that nobody agreed on
│       ├── UnknownStop     it stopped for a reason that is not known here
│       └── ServedModelDiffers  another model than the pinned one answered
└── RecordingDiverged       a replay was asked for something that was not recorded

A refusal is none of these: it is a response with `StopReason.REFUSAL`.
"""

from dataclasses import dataclass
from typing import ClassVar

from geode.llm.usage import Attempt, Usage


class LLMError(Exception):
    """A model call that gave no response."""


class ConfigurationError(LLMError):
    """The binding or its credentials are wrong; nothing was sent."""


class RouteRefused(ConfigurationError):
    """The route does not admit this model, or this purpose."""


class CredentialMissing(ConfigurationError):
    """No key for the route."""


class BudgetReached(LLMError):
    """The call could pass a cap on spending; nothing was sent, or nothing after `attempts`."""

    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a request that failed.

    `provider` is the route; `status` the HTTP status, None where no reply came, 200 for an error inside of a stream;
    `type` and `code` are the provider's own words; `body` is redacted and bounded.
    """

    provider: str
    status: int | None = None
    type: str = ""
    code: str = ""
    request_id: str = ""
    retry_after_s: float | None = None
    body: str = ""


class ProviderError(LLMError):
    """A request was sent, and gave no usable response.

    Args:
        message: what happened, for people.
        facts: what the provider said.
        usage: what the failed request was billed for, as far as the provider told.
        retryable: whether the same request may succeed later; by default what the class says.

    `attempts` are the requests before this one, filled in by whoever retries.
    """

    retryable_by_default: ClassVar[bool] = False

    def __init__(
        self, message: str, facts: Facts, *, usage: Usage | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.facts = facts
        self.usage = usage
        self.retryable = self.retryable_by_default if retryable is None else retryable
        self.attempts: tuple[Attempt, ...] = ()

    def __str__(self) -> str:
        said = [self.facts.provider, *([f"HTTP {self.facts.status}"] if self.facts.status else [])]
        said += [part for part in (self.facts.type, self.facts.code) if part]
        said += [f"request {self.facts.request_id}"] if self.facts.request_id else []
        tried = f"; {len(self.attempts) + 1} attempts" if self.attempts else ""
        return f"{super().__str__()} ({', '.join(said)}{tried})"


class ConnectionFailed(ProviderError):
    """No reply came: no connection, a broken one, or the time was up."""

    retryable_by_default = True


class Overloaded(ProviderError):
    """The provider cannot answer for now."""

    retryable_by_default = True


class RateLimited(ProviderError):
    """Too many requests for now."""

    retryable_by_default = True


class StreamCut(ProviderError):
    """The reply ended before its last event."""

    retryable_by_default = True


class WaitTooLong(ProviderError):
    """The provider asks for a longer wait than the retry policy, or what is left of its budget, allows."""


class AuthenticationFailed(ProviderError):
    """The key is wrong, expired, or may not do this."""


class PaymentRequired(ProviderError):
    """Credits, quota or plan are used up: waiting does not help."""


class ContextTooLarge(ProviderError):
    """The request is larger than the model's window."""


class RequestInvalid(ProviderError):
    """The provider does not take such a request."""


class ResponseInvalid(ProviderError):
    """The reply breaks the agreed form."""


class UnknownStop(ResponseInvalid):
    """The model stopped for a reason that is not known here; it is never taken for success."""


class ServedModelDiffers(ResponseInvalid):
    """Another model than the pinned one answered."""


class RecordingDiverged(LLMError):
    """A recorded session was asked for a reply that it does not hold."""
