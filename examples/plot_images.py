"""
Images: handwritten digits
==========================

Half of the labels of 1,797 handwritten digits are drawn at random. The features are the
64 pixels of each image, which come with scikit-learn.
"""

# %%
# Make the noise. ``symmetric`` draws a share of the labels from all classes.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from stct import LabelCorrector, noise

digits = load_digits()
given = noise.symmetric(digits.target, 10, 0.5, np.random.default_rng(0)).labels
print(f"right labels: {np.mean(given == digits.target):.1%}")

# %%
# Correct them. The truth is used only to say how good the result is.

corrector = LabelCorrector().fit(digits.data, given)
right = np.mean(corrector.labels_ == digits.target)
print(f"right labels: {right:.1%}")
print(f"estimated without the truth: {corrector.estimated_accuracy_.after:.1%}")

# %%
# Ten of the changed labels, those that the method is surest of.

changed = np.flatnonzero(corrector.action_ == "relabel")
surest = changed[np.argsort(-corrector.confidence_[changed])][:10]
figure, axes = plt.subplots(2, 5, figsize=(8, 3.8), layout="constrained")
for axis, row in zip(axes.flat, surest, strict=True):
    axis.imshow(digits.images[row], cmap="gray_r")
    axis.set_title(f"{given[row]} $\\to$ {corrector.labels_[row]}")
    axis.axis("off")

# %%
# The least sure ones are worth a look by a person.

unsure = np.argsort(corrector.confidence_)[:10]
figure, axes = plt.subplots(2, 5, figsize=(8, 3.8), layout="constrained")
for axis, row in zip(axes.flat, unsure, strict=True):
    axis.imshow(digits.images[row], cmap="gray_r")
    axis.set_title(f"{corrector.labels_[row]}: {corrector.confidence_[row]:.0%}")
    axis.axis("off")
