"""The bundled fixes, one room each, and the shop that puts them into a tree.

``list_fixes`` and ``find_fix`` read metadata; ``find_target`` finds a package without importing
it; ``check``, ``diff``, ``apply`` and ``revert`` each take a fix and a target and give a
``FixResult``. Importing this package loads neither LibCST nor any fix's code.
"""
