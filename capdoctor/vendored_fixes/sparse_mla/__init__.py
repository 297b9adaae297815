"""vLLM: no wait on an event that belongs to a captured graph segment."""
