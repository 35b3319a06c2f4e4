"""Looking: the warehouse, foreign archives, replays, comparisons and reports."""
