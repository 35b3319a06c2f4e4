"""Settings, and where state lives on disk."""
