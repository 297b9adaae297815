"""Files that are handed to the Python that has the engine. They import nothing of capdoctor."""
