"""Composition roots: where concrete parts are built and joined."""
