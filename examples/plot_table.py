"""
A table: breast cancer
======================

569 tumours with 30 measurements each, from scikit-learn; 20% of the labels are wrong. A
pipeline scales the columns, which have different units.
"""

# %%
# Noise in a table of measurements.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from stct import LabelCorrector, noise

table = load_breast_cancer(as_frame=True)
truth = table.target.to_numpy()
given = noise.pair(truth, 2, 0.2, np.random.default_rng(0)).labels
names = table.target_names
print(f"right labels: {np.mean(given == truth):.1%}")

# %%
# ``LabelCorrector`` is an estimator: it stands at the end of a pipeline, and predicts.

model = make_pipeline(RobustScaler(), LabelCorrector())
model.fit(table.data, names[given])
corrector = model[-1]
print(f"right labels: {np.mean(corrector.labels_ == names[truth]):.1%}")
new = model.predict(table.data.iloc[:3])
print("the first three rows, as if they were new:", *new)

# %%
# Right and wrong labels by the probability that the given label is right.

column = np.searchsorted(corrector.classes_, names[given])
trust = corrector.label_distributions_[np.arange(len(given)), column]
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
right = given == truth
axis.hist(
    [trust[right], trust[~right]],
    bins=np.linspace(0, 1, 21),
    stacked=True,
    color=["#47708a", "#b8391b"],
    label=["right", "wrong"],
)
axis.set_yscale("log")
axis.set_xlabel("probability that the given label is right")
axis.set_ylabel("rows")
axis.legend(title="given label")

# %%
# How many labels are wrong, without the truth, and the interval.

before = corrector.estimated_accuracy_
low, high = before.before_interval
print(f"right before: {before.before:.1%}, between {low:.1%} and {high:.1%}")
