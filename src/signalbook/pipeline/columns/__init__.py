"""The fast path: many messages of one type judged and written as columns."""
