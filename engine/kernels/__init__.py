"""Where a faster kernel is picked for the device at hand."""
