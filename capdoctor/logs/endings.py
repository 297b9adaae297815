"""Where a message ends that no record header bounds: a matter of what the next line looks like."""

from __future__ import annotations

import re

# Text that never is the continuation of a raw message.
_ENDS = (
    r"Process \S+:$|\+ \S|\S+\.pyx?:\d+: \w*Warning: |Exception ignored in|Exception in thread"
    r"|Fatal Python error|terminate called|!!!!!!! Segfault|\S+ exited with |Killed$|\^C$"
    r"|.{0,200}\d{1,3}%\||={5,}$|Current thread 0x|\*\*\* |\S+:\d+:\d+ \[-?\d+\] NCCL "
    r"|```|</?(?:details|summary|pre|code)>"
)
# Text that goes on after a blank line inside a message.
_GOES_ON = (
    r"Set TORCH|You can suppress|Repro command|Possible solutions|\d+\. |Exception raised from"
    r"|C\+\+ Captured|', please|from user code|  |Last error|Please |For debugging|Compile with"
    r"|Search for"
)


def ends_raw_message(text: str) -> bool:
    """Whether a line cannot belong to the message of a raw traceback before it."""
    return re.match(_ENDS, text) is not None


def goes_on_after_blank(text: str) -> bool:
    """Whether a line behind a blank one still belongs to the message."""
    return re.match(_GOES_ON, text) is not None
