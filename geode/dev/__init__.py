"""For those who build on GEODE."""
