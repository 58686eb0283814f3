"""What everything rests on and nothing is specific to: arrays, checks, whole files, threads, the machine, progress.

Imports `hasten.errors`.
"""
