"""Streams and files too large for one process: read in pieces, answered by several processes, merged in order.

A `RecordWork` reads, answers and encodes records: sentences with a tagger, or flat problems with a speedup. `work`
answers a stream. `shards` cuts files into pieces, which `run` answers so that the run can be resumed. `storage` reads
and writes files at paths and URLs.

Imports the speedup, the paper's task, and the rooms below them; never Ray, which only `hasten.ray` imports.
"""
