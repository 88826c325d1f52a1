"""Documents that are no plain text, read as text: PDF, Word and rich text."""
