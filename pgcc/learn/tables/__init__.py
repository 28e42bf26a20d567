"""Tables of data: read, packed, and split."""
