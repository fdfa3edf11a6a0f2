"""Ratings of items by users."""

from hogwild.data.ids import Ids
from hogwild.data.ratings.open_ratings import open_ratings, read_columns
from hogwild.data.ratings.ratings import Ratings
from hogwild.data.ratings.text import Columns

__all__ = ["Columns", "Ids", "Ratings", "open_ratings", "read_columns"]
