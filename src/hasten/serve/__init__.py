"""`hasten serve`: a saved model behind HTTP, with natural batching, a slow lane, a journal, metrics and a live page.

Imports uvicorn, which comes with the extra `serve`, and the rooms of everything that it serves; nothing imports it but
`hasten.commands`.
"""
