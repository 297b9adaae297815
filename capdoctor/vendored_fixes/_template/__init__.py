"""A room to copy: the smallest fix that does everything a fix has to do."""
