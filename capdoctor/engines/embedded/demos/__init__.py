"""Model files of the bundled demos. They are read as files and run by the engine, not imported."""
