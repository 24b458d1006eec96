"""Set before any test imports a library that would look for a model on the network."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
