"""A provider on loopback that speaks each wire, and takes and refuses what the real ones take and refuse.

`FakeProvider` (server) plays a `Script` (script), or, without one, a small agent of its own (agent). The rules of a
wire stand in its `*_rules` module; no request that breaks one gets an answer.
"""
