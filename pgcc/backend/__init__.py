"""Program → numbers, in every number system."""
