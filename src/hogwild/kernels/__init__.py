"""The compiled inner loops: arrays in, arrays out."""
