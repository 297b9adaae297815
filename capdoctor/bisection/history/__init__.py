"""The user's repository, read through a private one: revisions, ranges, tree keys, changes."""
