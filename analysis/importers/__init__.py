"""Readers of foreign archives, one module a format."""
