"""A battery of label correctors on one's own embeddings, with noise of known kind."""
