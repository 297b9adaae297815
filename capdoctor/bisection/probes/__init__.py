"""What is done at a commit to see whether it crashes."""
