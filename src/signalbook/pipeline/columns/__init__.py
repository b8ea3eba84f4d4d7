"""The fast path: many messages of one type validated and written as columns."""
