"""Arrays and linear algebra: rows in tiles, engines, ridge regression."""
