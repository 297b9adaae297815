"""The GPUs as seen from outside a run: what they hold, and whether they still work.

Everything is asked by a child process with a deadline: a call into a driver whose GPU is wedged
may never come back, and no context of ours is left on a GPU.
"""
