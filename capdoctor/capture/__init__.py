"""The rules of stream capture: the virtual device that obeys them on a CPU, and the checker.

``device.VirtualDevice`` is the way in: a context in which ``device="cuda"`` works without a GPU.

state          streams, events and captures as a machine, pure Python
rules, plans   the tables in ``tables/``: what breaks a rule, and each torch's words for it
session        what one device's parts share: tags, machine, judgement of a broken rule
dispatch_mode  the lower net: every operator; function_mode: the upper net: torch's Python API
tape           what a capture recorded, done again at a replay

Importing this package imports no torch.
"""
