"""The runtime: an agent harness that knows nothing of experiments."""

__version__ = "0.1.0"
