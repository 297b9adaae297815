"""Which commit to run next, as pure functions over positions: no git, no clock, no engine.

Position 0 is the clean end, position ``size`` the crashing end; candidate c means "c is the first
position that crashes". Looking for a fix instead is the same search over the reversed list.
"""
