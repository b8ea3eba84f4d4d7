"""The API of Confluent's Schema Registry, as a view on the same store."""
