"""What everything rests on: arrays, checks of settings and of files, whole files, threads, the terminal, the machine.

Imports only `hasten.errors`.
"""
