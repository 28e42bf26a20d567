"""What pgcc costs, always beside what something else costs in the same run. See README.md."""
