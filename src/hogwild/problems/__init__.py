"""Problems: objectives that are sums of many terms."""
