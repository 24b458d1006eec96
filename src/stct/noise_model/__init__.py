"""The noise model: transition matrices and the likelihood of the given labels."""
