"""Sentences with entities and relations: read, written, made up.

Imports `hasten.support`, `hasten.errors` and `tasks.text`.
"""
