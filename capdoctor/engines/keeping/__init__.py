"""Keep an engine: nothing of it outlives its run.

Runs as a process of its own, on the standard library alone.
"""
