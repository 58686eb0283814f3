"""Sequence labelling: parts of speech, entities in BIO, any tag a word, with rules for the whole sentence.

Imports the core, what tasks share, and how words are hashed and lines are read in `tasks.entity_relation`.
"""
