"""Text models of the transformers library, from a folder or the hub, as encoders.

Only safetensors weights are read. How token vectors become one vector is read from the
files that sentence-transformers writes beside a model; without them it is the mean.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stct.encoders.weights import digest_of, identity_of

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]

_VERSION = "1"  # of what happens between the text and the vector
_POOLINGS = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
_LAST = "lasttoken"
_SUPPORTED = ("Transformer", "Pooling", "Normalize")
_LONGEST = 512  # tokens, where the model's files do not say
_NO_LIMIT = 10**6  # tokenizers say 1e30 when they know none


@dataclass(frozen=True)
class Pooling:
    """From the vectors of a text's tokens to one vector."""

    modes: tuple[str, ...] = ("mean_tokens",)
    normalise: bool = False
    max_tokens: int | None = None  # None: as many as the model has places for
    lower: bool = False
    prompt: str = ""


@dataclass(frozen=True)
class TextEncoder:
    """A frozen text model, its tokenizer, and how token vectors become one."""

    name: str
    network: "torch.nn.Module"
    tokenizer: Any
    pooling: Pooling
    max_tokens: int

    @cached_property
    def digest(self) -> str:
        """A hash of the weights and of all that happens to a text."""
        tokenizer = self.tokenizer.backend_tokenizer.to_str()
        about = f"{_VERSION} {self.pooling} {self.max_tokens} {tokenizer}"
        return digest_of(self.network, about)

    @property
    def identity(self) -> str:
        """A folder name that no other encoder has."""
        return identity_of(self.name, self.digest)

    def tokenize(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        """Give the tokens of each text, and how many texts had to be cut."""
        prepared = [self.pooling.prompt + text for text in texts]
        if self.pooling.lower:
            prepared = [text.lower() for text in prepared]
        encoded = self.tokenizer(
            prepared, truncation=True, max_length=self.max_tokens, verbose=False
        )
        cut = sum(bool(part.overflowing) for part in encoded.encodings)
        return encoded["input_ids"], cut

    def forward(self, tokens: Sequence[Sequence[int]]) -> Floats:
        """Embed texts of equally many tokens, (b, t) -> (b, d): nothing is padding."""
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        network = self.network.to(device)
        ids = torch.tensor(tokens, device=device)
        with torch.inference_mode():
            out = network(input_ids=ids, attention_mask=torch.ones_like(ids))
            pooled = _pool(out.last_hidden_state, self.pooling.modes)
            if self.pooling.normalise:
                pooled = torch.nn.functional.normalize(pooled, dim=1)
        values: Floats = pooled.float().cpu().numpy()
        if not np.isfinite(values).all():
            raise ValueError(f"encoder {self.name} gave NaN or infinite features")
        return values


def _pool(vectors: "torch.Tensor", modes: Sequence[str]) -> "torch.Tensor":
    """Turn token vectors (b, t, d) into one vector for each text."""
    import torch

    parts: dict[str, Callable[[], torch.Tensor]] = {
        "cls_token": lambda: vectors[:, 0],
        "mean_tokens": lambda: vectors.mean(dim=1),
        "max_tokens": lambda: vectors.amax(dim=1),
        "mean_sqrt_len_tokens": lambda: vectors.sum(dim=1) / vectors.shape[1] ** 0.5,
        _LAST: lambda: vectors[:, -1],
    }
    return torch.cat([parts[mode]() for mode in modes], dim=1)


def as_text_encoder(name: str, place: str, model: Any) -> TextEncoder:
    """Add tokenizer and pooling to a loaded model.

    Parameters
    ----------
    name : str
        What the encoder is called.
    place : str
        The model's folder or name on the hub.
    model : transformers.PreTrainedModel

    Raises
    ------
    ValueError
        If there is no fast tokenizer, or a part that is not supported.
    """
    from transformers import AutoTokenizer

    load: Any = AutoTokenizer.from_pretrained
    try:
        tokenizer: Any = load(place, use_fast=True)
    except Exception as error:  # transformers raises many kinds
        if isinstance(error, MemoryError):
            raise
        raise ValueError(
            f"{name}: a model of text needs its tokenizer (tokenizer.json) beside it: "
            f"{' '.join(str(error).split())[:200]}"
        ) from error
    fast = getattr(tokenizer, "is_fast", False)
    # Without any file transformers makes one up that knows no word.
    if not fast or len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ValueError(
            f"{name}: a model of text needs its tokenizer (tokenizer.json) beside it"
        )
    pooling = _read_pooling(name, place)
    places = getattr(model.config, "max_position_embeddings", None) or _LONGEST
    known = [pooling.max_tokens, tokenizer.model_max_length, places]
    limits = [n for n in known if isinstance(n, int) and 0 < n < _NO_LIMIT]
    return TextEncoder(name, model.eval(), tokenizer, pooling, min(limits))


def _read_pooling(name: str, place: str) -> Pooling:
    modules = _read_json(place, "modules.json")
    if modules is None:
        return Pooling()
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    odd = [kind for kind in kinds if kind not in _SUPPORTED]
    if odd:
        raise ValueError(
            f"{name}: its part {odd[0]} is not supported; save its embeddings with "
            "sentence-transformers and pass them as --embeddings"
        )
    path = next(m["path"] for m, k in zip(modules, kinds, strict=True) if k != kinds[0])
    about = _read_json(place, f"{path}/config.json") or {}
    modes = tuple(m for m in (*_POOLINGS, _LAST) if about.get(f"pooling_mode_{m}"))
    known = [k for k, v in about.items() if k.startswith("pooling_mode_") and v is True]
    if len(modes) < max(len(known), 1):
        raise ValueError(f"{name}: its pooling {', '.join(known)} is not supported")
    sizes = _read_json(place, "sentence_bert_config.json") or {}
    prompts = _read_json(place, "config_sentence_transformers.json") or {}
    default = prompts.get("default_prompt_name")
    return Pooling(
        modes,
        "Normalize" in kinds,
        sizes.get("max_seq_length"),
        bool(sizes.get("do_lower_case")),
        prompts.get("prompts", {}).get(default, "") if default else "",
    )


def _read_json(place: str, name: str) -> Any:
    """Read a file of a model's folder or of the hub; None where there is none."""
    from transformers.utils.hub import cached_file

    found = cached_file(
        place,
        name,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
        _raise_exceptions_for_gated_repo=False,
    )
    if found is None:
        return None
    try:
        return json.loads(Path(found).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{place}: {name} is not readable: {error}") from error
