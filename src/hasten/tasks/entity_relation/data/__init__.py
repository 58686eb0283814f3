"""Sentences with entities and relations: read, written, made up.

Imports `hasten.support` and `hasten.errors`.
"""
