"""Recipes: how columns of a table became embeddings, and the same for new rows."""

from stct.features.recipe import Recipe, as_arrays, read_recipe

__all__ = ["Recipe", "as_arrays", "read_recipe"]
