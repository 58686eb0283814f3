"""The parts that all tasks on text share: lines of files, blocks of them, objects of JSON, words as numbers.

Imports `support`, `jit` and the errors; knows no task.
"""
