"""What a shell command would run, read from its text before anything runs."""
