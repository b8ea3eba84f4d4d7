"""Landing streams of messages on Spark: one typed table a message, dead letters beside them, nothing lost.

Rule 1: Spark plans, distributes and retries; a worker matches its part and writes files; only the driver commits.
Rule 2: a batch is in the lake once its manifest is; from then on it only rolls forward and is never matched again.
"""
