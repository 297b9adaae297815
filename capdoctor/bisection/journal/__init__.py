"""What happened, line by line on disk: a kill at any moment loses at most the run under way."""
