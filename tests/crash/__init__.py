"""Proof by breaking: a scripted session is broken at every point of persistence, by every fault, and gone on with."""
