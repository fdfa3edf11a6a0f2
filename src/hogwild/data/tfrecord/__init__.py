"""TFRecord files: the framing of records, their contents, and a writer."""
