"""Measures hasten and its peers side by side, on the same problems, in one run."""
