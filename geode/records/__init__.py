"""Records: each store is separate, and only checkpoint and receipts are read back as state."""
