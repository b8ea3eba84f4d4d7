"""The CNCF Message and Event Catalog API 0.1 on the same store."""
