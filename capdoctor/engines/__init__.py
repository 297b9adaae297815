"""Start an engine, watch it, end it: ``EngineSpec`` in, ``RunOutcome`` out.

Import from the modules: `start` runs once, `series` several times, `listener` is told what goes
on, `pythons` finds the Python that has an engine. Nothing is imported here, because the child of
the embedded engine lies below this package and pays for it.
"""
