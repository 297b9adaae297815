"""How answers are shown: terminal, Markdown, JSON, SARIF."""
