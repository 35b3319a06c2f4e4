"""Judges: a rubric in, typed judgments out."""
