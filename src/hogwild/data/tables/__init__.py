"""Tables with named columns: the role of each column, and the fitted encoding of columns as features.

The readers of CSV, JSON lines, Arrow and Parquet, and data frames, all give Arrow batches. ``encode`` makes rows of any
such batch.
"""

from hogwild.data.tables.column_roles import ColumnRoles
from hogwild.data.tables.table_encoding import ColumnEncoding, TableEncoding

__all__ = ["ColumnEncoding", "ColumnRoles", "TableEncoding"]
