"""Ports kept in memory: for tests, and for running whole turns without AWS. They pass the same contract suites."""
