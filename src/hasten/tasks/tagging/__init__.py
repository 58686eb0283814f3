"""Sequence labelling: parts of speech, entities in BIO, any tag a word, with rules for the whole sentence.

Imports the core, what tasks share (words and lines of `tasks.text` among it), and the made-up news of
`tasks.entity_relation.data`.
"""
