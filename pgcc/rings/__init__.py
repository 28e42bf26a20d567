"""Program × rows → numbers with bounds, one number system after another."""
