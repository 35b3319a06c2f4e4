"""Models: what a call is, how it can fail, and the adapters that make it."""
