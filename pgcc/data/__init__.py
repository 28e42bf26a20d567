"""Evidence and tables from everywhere: dicts, arrays, frames, text, .npy."""
