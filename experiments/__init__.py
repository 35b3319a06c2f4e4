"""The bench: plans, runs and judges experiments on the production loop. It has no loop of its own."""
