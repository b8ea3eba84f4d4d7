-- Changes of `attrs` that were not entered there yet: one row for each version written, with the terms it has got and
-- those it has lost as 64-bit numbers side by side. A look-up reads these few rows as well.
CREATE TABLE recent (
  seq {counter},
  key {text_key} NOT NULL,
  fresh {blob} NOT NULL,
  stale {blob} NOT NULL
);
