"""
A crowd: several annotators
===========================

Six annotators label some of 1,797 digits each; three of them are careless. Features and
votes together tell who is good, and which labels are right.
"""

# %%
# Every annotator labels a third of the rows. None stands for no label.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from stct import LabelCorrector

digits = load_digits()
X, truth = digits.data, digits.target
n = len(truth)
quality = [0.95, 0.9, 0.8, 0.5, 0.4, 0.3]
rng = np.random.default_rng(0)
votes = np.full((n, len(quality)), None, dtype=object)
for k, right in enumerate(quality):
    rows = np.flatnonzero(rng.random(n) < 1 / 3)
    guessed = rng.random(len(rows)) > right
    votes[rows, k] = np.where(guessed, rng.integers(0, 10, len(rows)), truth[rows])
print(f"{pd.notna(votes).mean():.0%} of the cells have a label")

# %%
# One fit for annotators and features.

corrector = LabelCorrector().fit(X, votes)
print(f"right labels: {np.mean(corrector.labels_ == truth):.1%}")

# %%
# The vote of the majority, for comparison; ties and rows without a vote are drawn.


def majority(row):
    """Give the most common vote of a row."""
    cast = [vote for vote in row if vote is not None] or list(range(10))
    counts = [cast.count(vote) for vote in cast]
    most = [
        vote for vote, count in zip(cast, counts, strict=True) if count == max(counts)
    ]
    return most[rng.integers(len(most))]


voted = np.array([majority(row) for row in votes])
print(f"right labels: {np.mean(voted == truth):.1%}")

# %%
# What was estimated for each annotator, without the truth, beside what is true.

places = np.arange(len(quality))
real = []
for k in places:
    cast = pd.notna(votes[:, k])
    real.append(np.mean(votes[cast, k] == truth[cast]))
estimated = [annotator.accuracy for annotator in corrector.annotators_]
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
axis.bar(places - 0.2, real, width=0.4, color="#47708a", label="true")
axis.bar(places + 0.2, estimated, width=0.4, color="#b8391b", label="estimated")
axis.set_xticks(places, [f"annotator {k}" for k in places])
axis.set_ylabel("share of right votes")
axis.set_ylim(0, 1)
axis.legend()
