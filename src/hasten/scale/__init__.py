"""Streams and files too large for one process: read in pieces, answered by many, put together again.

What is done with a record is a `Work`: sentences and a tagger, or flat problems and a speedup.
`stream` answers a stream in order. `shards` cuts files into pieces, and `run` answers these so that it can be resumed.

Imports the speedup, the paper's task, and what is below them; never Ray: `hasten.ray` brings that.
"""
