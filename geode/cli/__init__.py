"""The `geode` command."""
