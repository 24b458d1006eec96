"""Noisy meta correction: from embeddings and given labels to corrected ones."""
