"""Frozen encoders: images or texts in, embeddings out, kept in a cache on the disk.

Nothing heavy is imported until an encoder is loaded.
"""

from stct.encoders.cache import default_cache
from stct.encoders.embedding import Encoder, embed, load_encoder
from stct.encoders.preprocess import Preprocess
from stct.encoders.text_network import TextEncoder
from stct.encoders.texts import embed_text

__all__ = [
    "Encoder",
    "Preprocess",
    "TextEncoder",
    "default_cache",
    "embed",
    "embed_text",
    "load_encoder",
]
