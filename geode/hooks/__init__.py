"""Two planes: `HookRegistry` decides, `HookSystem` observes."""
