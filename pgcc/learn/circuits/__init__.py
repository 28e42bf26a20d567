"""The numbers of any circuit."""
