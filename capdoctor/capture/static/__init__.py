"""The static pass: places in a source tree that a capture would probably refuse.

Nothing here is proven: a candidate says how sure the pass is and why. It reads source text only
(``ast``), imports nothing of the tree, and needs no torch.
"""

from __future__ import annotations

from capdoctor.capture.static.scan import scan

__all__ = ["scan"]
