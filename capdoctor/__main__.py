"""Run capdoctor as ``python -m capdoctor``."""

from __future__ import annotations

from capdoctor.cli import main

if __name__ == "__main__":
    main()
