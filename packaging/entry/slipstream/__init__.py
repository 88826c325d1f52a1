"""The package that the app's launcher starts by name."""
