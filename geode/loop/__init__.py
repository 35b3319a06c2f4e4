"""The agentic loop."""
