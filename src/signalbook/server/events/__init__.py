"""Changes as events: the feed, subscriptions, and deliveries to sinks."""
