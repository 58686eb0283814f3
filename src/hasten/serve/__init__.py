"""`hasten serve`: a saved model behind HTTP, with natural batching, a slow lane, a journal, metrics and a live page.

Imports httptools and uvloop, which come with the extra `serve`, and the rooms of everything that it serves; nothing
imports it but `hasten.commands`.
"""
