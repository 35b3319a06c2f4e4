"""The `workspace` suite and its tasks: one folder a task."""
