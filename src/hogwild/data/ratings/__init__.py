"""Ratings of items by users."""

from hogwild.data.ratings.dialect import Columns
from hogwild.data.ratings.ids import Ids
from hogwild.data.ratings.opening import open_ratings, read_columns
from hogwild.data.ratings.ratings import Ratings

__all__ = ["Columns", "Ids", "Ratings", "open_ratings", "read_columns"]
