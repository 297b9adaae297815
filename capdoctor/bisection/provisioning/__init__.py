"""How a commit is made to run: from git objects, in a worktree, or over an installed engine."""
