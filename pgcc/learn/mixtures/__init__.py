"""SimplePGC and DPP: mixtures of determinantal PGCs over groups of variables."""
