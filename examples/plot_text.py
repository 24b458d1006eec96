"""
Text: support messages
======================

Messages of six kinds, of which an eighth carry a wrong label. The embedding is TF-IDF,
which the light install has; a sentence encoder does better on real texts.
"""

# %%
# The messages are made by code: an opening, a request, a detail.

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from stct import LabelCorrector, noise
from stct.encoders import embed_text

REQUESTS = {
    "card lost": ["my card is lost", "I lost the card", "somebody stole my card"],
    "card arrival": ["when does my card come", "the card has not come", "card by post"],
    "pin": ["I forgot my pin", "change the pin", "the pin is refused"],
    "transfer": ["my transfer failed", "the transfer is late", "stop a transfer"],
    "rate": ["the exchange rate is wrong", "which rate applies", "a better rate"],
    "top up": ["top up failed", "my top up is missing", "top up by cheque"],
}
OPENINGS = ["", "Hello, ", "Please help: ", "Since today ", "Again, ", "Urgent: "]
DETAILS = ["", " abroad", " in the app", " on my phone", ", thanks", ", what now?"]

kinds = list(REQUESTS)
texts, truth = [], []
for code, kind in enumerate(kinds):
    for opening, request, detail in product(OPENINGS, REQUESTS[kind], DETAILS):
        texts.append(opening + request + detail)
        truth.append(code)
truth = np.array(truth)
print(f"{len(texts)} messages, such as {texts[100]!r}")

# %%
# Cards are confused with each other; all other errors are spread.

T = 0.9 * np.eye(6) + 0.1 / 6
T[0, 0] -= 0.2
T[0, 1] += 0.2
given = noise.from_matrix(truth, T, np.random.default_rng(0)).labels
print(f"right labels: {np.mean(given == truth):.1%}")

# %%
# Embed and correct.

X = embed_text(texts)
labels = np.array(kinds)[given]
corrector = LabelCorrector().fit(X, labels)
right = np.mean(corrector.labels_ == np.array(kinds)[truth])
print(f"right labels: {right:.1%}")

# %%
# The first corrections, as a person would read them.

for row in np.flatnonzero(corrector.action_ == "relabel")[:6]:
    print(f"{texts[row]!r}: {labels[row]} -> {corrector.labels_[row]}")

# %%
# The estimated transition matrix shows which kinds were confused.

figure, axis = plt.subplots(figsize=(5.5, 4.6), layout="constrained")
names = corrector.classes_
picture = axis.imshow(corrector.transition_matrix_, cmap="Blues", vmin=0, vmax=1)
axis.set_xticks(range(6), names, rotation=40, ha="right")
axis.set_yticks(range(6), names)
axis.set_xlabel("given")
axis.set_ylabel("should be")
figure.colorbar(picture, label="probability")

# %%
# The same from a file, in one command::
#
#     stct correct support.csv --text-column text
