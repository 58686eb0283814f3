"""What all tasks on text share: lines of files, objects of JSON, words as numbers.

Imports `support` and the errors; knows no task.
"""
