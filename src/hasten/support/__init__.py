"""Tools of all rooms: arrays, checks, forms of files, whole files, threads, progress, the terminal, the machine.

Imports `hasten.errors`.
"""
