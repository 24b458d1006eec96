"""What a reader of the documentation has already: small files of their own."""

import csv
from itertools import product

import numpy as np

SAID = {
    "card": ["my card is lost", "the card was stolen", "I need a new card"],
    "pin": ["I forgot my pin", "how do I change the pin", "the pin is refused"],
    "transfer": ["the transfer failed", "my transfer is late", "cancel a transfer"],
    "rate": ["what is the exchange rate", "the rate is wrong", "which rate applies"],
}
BEFORE = ["", "hello, ", "please help: ", "since today ", "again ", "urgent, "]
AFTER = ["", ", thanks", ", what now", " in the app", " abroad", ", please"]


def write_files(folder):
    """Write support.csv: messages of four kinds, every eighth with a wrong label."""
    labels = list(SAID)
    messages = [
        (f"{a}{said}{b}", label)
        for label in labels
        for said, a, b in product(SAID[label], BEFORE, AFTER)
    ]
    generator = np.random.default_rng(0)
    with (folder / "support.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        for i, row in enumerate(generator.permutation(len(messages))):
            text, label = messages[row]
            wrong = labels[(labels.index(label) + 1 + i % 3) % 4]
            writer.writerow([i, text, wrong if i % 8 == 0 else label])
