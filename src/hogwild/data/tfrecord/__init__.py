"""TFRecord files: how records are framed, what is in them, and how they are written."""
