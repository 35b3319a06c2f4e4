"""The suites that are shipped: one folder a suite, one folder in it a task."""
