"""The bundled fixes, one room each, and the shop that puts them into a tree.

``catalogue`` reads what each fix repairs, ``targets`` finds a package without importing it,
``shop`` checks and shows, ``applying`` and ``reverting`` change; ``jobs`` pairs the fixes and
targets of one call. Nothing here loads LibCST, or a fix's code, before it is needed.
"""
