"""The rules of stream capture: the virtual device that obeys them on a CPU, and the checker."""
