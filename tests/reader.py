"""What a reader of the documentation has already: small files of their own."""

import csv
from importlib.util import find_spec
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
    """Write support.csv and, where Pillow is, photos/ with a folder for each class."""
    write_messages(folder)
    if find_spec("PIL"):
        write_photos(folder / "photos")


def write_photos(folder):
    """Thirty pictures of stripes in two directions."""
    from PIL import Image

    generator = np.random.default_rng(0)
    for i in range(30):
        place = folder / ("rows" if i % 2 else "columns")
        place.mkdir(parents=True, exist_ok=True)
        stripes = np.tile(200 * (np.arange(48) // 6 % 2), (48, 1))
        pixels = (stripes.T if i % 2 else stripes) + generator.integers(0, 55, (48, 48))
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{i}.png")


def write_messages(folder):
    """Messages of four kinds, every eighth with a wrong label."""
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
