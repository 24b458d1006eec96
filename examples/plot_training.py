"""
Training: a network from noisy images
=====================================

Where no encoder knows your images, ``STCT`` trains one: SimCLR without labels, then in
turn noisy meta correction and semi-supervised learning. Needs ``stct[train]``. Settings
are cut to run in seconds; ``preset="tiny"`` alone gives better results on these digits.
"""

# %%
# Half of the training labels are drawn at random; every fifth digit is for testing.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from stct import noise
from stct.train import STCT, preset

digits = load_digits()
images = (digits.images * (255 / 16)).astype(np.uint8)
test = np.arange(len(images)) % 5 == 0
rng = np.random.default_rng(0)
given = noise.symmetric(digits.target[~test], 10, 0.5, rng).labels

# %%
# A preset is a plain object; a variant is the same object with other values.

tiny = preset("tiny")
short = replace(
    tiny,
    num_rounds=2,
    pretrain=replace(tiny.pretrain, epochs=20),
    srl=replace(tiny.srl, steps=80),
)
model = STCT(config=short, seed=0).fit(images[~test], given)

truth = digits.target[~test]
print(f"right labels before: {np.mean(given == truth):.1%}")
print(f"right labels after:  {np.mean(model.labels_ == truth):.1%}")
accuracy = np.mean(model.predict(images[test]) == digits.target[test])
print(f"test accuracy:       {accuracy:.1%}")

# %%
# Every round leaves its numbers.

for one in model.history_:
    print(f"round {one['round']}: {one['selected']:,} rows teach their labels")

# %%
# What the network has learnt: test images along the two main axes of its embedding, in
# the colours of the true digits.

H = model.embed(images[test])
H = H - H.mean(axis=0)
_, _, axes = np.linalg.svd(H, full_matrices=False)
flat = H @ axes[:2].T
figure, axis = plt.subplots(figsize=(6, 4.6), layout="constrained")
points = axis.scatter(*flat.T, c=digits.target[test], cmap="tab10", s=14)
figure.legend(*points.legend_elements(), title="digit", loc="outside right upper")
axis.set_xticks([])
axis.set_yticks([])
