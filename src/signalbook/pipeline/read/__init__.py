"""Where messages come from: files, DataFrames, Kafka's records, spools of other brokers."""
