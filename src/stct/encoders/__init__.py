"""Frozen image encoders: pixels in, embeddings out, kept in a cache on the disk.

Nothing heavy is imported until an encoder is loaded.
"""

from stct.encoders.cache import default_cache
from stct.encoders.embedding import Encoder, embed, load_encoder
from stct.encoders.preprocess import Preprocess

__all__ = ["Encoder", "Preprocess", "default_cache", "embed", "load_encoder"]
