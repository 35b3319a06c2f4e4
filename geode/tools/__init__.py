"""Tools: what the model can ask for, and the code that does it."""
