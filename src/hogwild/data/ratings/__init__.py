"""Ratings of items by users."""

from hogwild.data.ratings.csv_dialect import Columns
from hogwild.data.ratings.id_index import Ids
from hogwild.data.ratings.open_ratings import open_ratings, read_columns
from hogwild.data.ratings.ratings import Ratings

__all__ = ["Columns", "Ids", "Ratings", "open_ratings", "read_columns"]
