"""aiter: no host-to-device copy for the leading zero of a folded indptr."""
