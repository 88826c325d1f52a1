"""The Models window: its list, its detail pane and what they share."""
