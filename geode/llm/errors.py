"""What can go wrong between the loop and a model, named by what the caller can do.

LLMError
├── ConfigurationError     change the configuration; no request was sent
│   └── RouteRefused       the route exists, this model or purpose is not admitted on it
├── TransientError         the same request may succeed later
├── ContextOverflow        send less
├── ResponseInvalid        the provider answered, in a form that nobody agreed on
└── RecordingDiverged      a replay was asked for something that was not recorded
"""


class LLMError(Exception):
    """A model call that gave no response."""


class ConfigurationError(LLMError):
    """The binding or its credentials are wrong; nothing was sent."""


class RouteRefused(ConfigurationError):  # noqa: N818  (named by what happened)
    """The route does not admit this model, or this purpose."""


class TransientError(LLMError):
    """The provider or the network failed in a way that passes."""


class ContextOverflow(LLMError):  # noqa: N818  (named by what happened)
    """The request is larger than the model's window."""


class ResponseInvalid(LLMError):  # noqa: N818  (named by what happened)
    """The reply breaks the agreed form."""


class RecordingDiverged(LLMError):  # noqa: N818  (named by what happened)
    """A recorded session was asked for a reply that it does not hold."""
