"""How likely each commit is to be the culprit, judged by the crash's traceback."""
