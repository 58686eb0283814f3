"""What everything rests on and nothing is specific to: arrays, checks of settings, whole files, threads, the machine.

Imports `hasten.errors`.
"""
