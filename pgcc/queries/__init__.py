"""Questions to a compiled circuit, one file per kind."""
