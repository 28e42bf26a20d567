"""Several estimators: stacked, or the best of them."""
