"""How often the gate errs, measured on sweeps in which the truth is known."""
