"""The simulated worker: what it can do, how it errs, and which words change that. `geode.llm.simulated` adapts it."""
