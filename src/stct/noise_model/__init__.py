"""The annotator's errors: the transition matrix and the likelihood of given labels."""
