"""Image models of the transformers library, from a folder or the hub, as backbones.

Only safetensors weights are read. torchvision is not needed: the images are prepared
by `Preprocess` with the settings of the model's own image processor.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stct.encoders.preprocess import Preprocess, from_processor_config


class HFBackbone(nn.Module):
    """An image model that gives one feature vector for each image.

    Attributes
    ----------
    width : int
        The number of features.
    preprocess : Preprocess
        How its images are prepared; ``preprocess.mean`` and ``.std`` normalise.
    """

    def __init__(self, model: nn.Module, preprocess: Preprocess, *, use_pooler: bool):
        super().__init__()
        self.model = model
        self.preprocess = preprocess
        self.use_pooler = use_pooler
        side = min(preprocess.crop or preprocess.size or (preprocess.pixels,))
        was_training = self.training
        with torch.no_grad():
            self.eval()
            self.width = int(self(torch.zeros(1, 3, side, side)).shape[1])
            self.train(was_training)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Turn normalised images (b, 3, h, w) into features (b, d)."""
        model: Any = self.model
        if hasattr(model, "get_image_features"):  # CLIP and its kin
            out = model.get_image_features(pixel_values=x)
            features: torch.Tensor = getattr(out, "pooler_output", out)
            return features.flatten(1)
        out = model(pixel_values=x)
        pooled: torch.Tensor | None = getattr(out, "pooler_output", None)
        if self.use_pooler and pooled is not None:
            return pooled.flatten(1)
        last: torch.Tensor = out.last_hidden_state
        # (b, c, h, w): mean over places; (b, t, d): the class token, which is first
        return last.mean(dim=(2, 3)) if last.ndim == 4 else last[:, 0]


def load_hf_backbone(name_or_dir: str | Path, *, pretrained: bool = True) -> HFBackbone:
    """Load a trainable backbone, for example ``microsoft/resnet-50``.

    Parameters
    ----------
    name_or_dir : str or path
        A folder that ``save_pretrained`` wrote, or a name on the Hugging Face hub.
    pretrained : bool
        Otherwise only the architecture is taken, for weights that are loaded later.

    Raises
    ------
    ValueError
        If it cannot be loaded, lacks weights, or is not a model of images.
    """
    name = str(name_or_dir)
    try:
        from transformers import AutoConfig, AutoModel
    except ImportError as error:
        raise ValueError(
            f"hf:{name} needs transformers: pip install 'stct[encoders]'"
        ) from error
    try:
        with _quiet():
            if pretrained:
                model, report = AutoModel.from_pretrained(
                    name, output_loading_info=True, use_safetensors=True
                )
            else:
                untyped: Any = AutoModel
                model = untyped.from_config(AutoConfig.from_pretrained(name))
                report = {"missing_keys": []}
            config = _processor_config(name)
    except Exception as error:  # transformers raises many kinds
        if isinstance(error, MemoryError):
            raise
        reason = " ".join(str(error).split())
        raise ValueError(
            f"hf:{name}: not loaded; it must be a folder with config.json and "
            f"model.safetensors, or a name on the hub ({reason[:300]})"
        ) from error
    if getattr(model, "main_input_name", "") != "pixel_values" and not hasattr(
        model, "get_image_features"
    ):
        raise ValueError(f"hf:{name}: {type(model).__name__} is not a model of images")
    missing = sorted(report["missing_keys"])
    # A checkpoint of a classifier often lacks the pooler, which would be random.
    lacking = [key for key in missing if "pooler" not in key]
    if lacking:
        raise ValueError(f"hf:{name}: its file lacks weights, such as {lacking[0]}")
    sizes = getattr(model.config, "vision_config", model.config)
    preprocess = from_processor_config(config, getattr(sizes, "image_size", None))
    return HFBackbone(model, preprocess, use_pooler=not missing)


def _processor_config(name: str) -> dict[str, Any]:
    from transformers.image_processing_utils import BaseImageProcessor

    try:
        config, _ = BaseImageProcessor.get_image_processor_dict(name)
    except OSError:  # there is none; the model's own image size will do
        return {}
    return dict(config)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' reports and bars, and the hub's retries, off the screen."""
    from transformers.utils import logging as untyped

    reports: Any = untyped
    level = reports.get_verbosity()
    bars = reports.is_progress_bar_enabled()
    hub = logging.getLogger("huggingface_hub")
    hub_level = hub.level
    reports.set_verbosity_error()
    reports.disable_progress_bar()
    hub.setLevel(logging.ERROR)
    try:
        yield
    finally:
        hub.setLevel(hub_level)
        reports.set_verbosity(level)
        if bars:
            reports.enable_progress_bar()
