"""QObjects between the widgets and the engine, the disk and the system."""
