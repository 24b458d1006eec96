"""Models of the transformers library, from a folder or the hub: images or text.

Only safetensors weights are read. torchvision is not needed: the images are prepared
by `Preprocess` with the settings of the model's own image processor.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stct.encoders.preprocess import Preprocess, from_processor_config
from stct.encoders.text_network import TextEncoder, as_text_encoder


class HFBackbone(nn.Module):
    """An image model that gives one feature vector for each image.

    Attributes
    ----------
    width : int
        The number of features.
    preprocess : Preprocess
        How its images are prepared; ``preprocess.mean`` and ``.std`` normalise.
    recipe : dict
        All that `rebuild_hf_backbone` needs beside the weights, for JSON.
    """

    def __init__(self, model: Any, processor: dict[str, Any], *, use_pooler: bool):
        super().__init__()
        self.model = model
        sizes = getattr(model.config, "vision_config", model.config)
        preprocess = from_processor_config(
            processor, getattr(sizes, "image_size", None)
        )
        self.preprocess: Preprocess = preprocess
        self.use_pooler = use_pooler
        self.recipe: dict[str, Any] = {
            "model": json.loads(model.config.to_json_string(use_diff=False)),
            "processor": processor,
            "use_pooler": use_pooler,
        }
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


def load_hf_backbone(name_or_dir: str | Path) -> HFBackbone:
    """Load a trainable backbone, for example ``microsoft/resnet-50``.

    Parameters
    ----------
    name_or_dir : str or path
        A folder that ``save_pretrained`` wrote, or a name on the Hugging Face hub.

    Raises
    ------
    ValueError
        If it cannot be loaded, lacks weights, or is not a model of images.
    """
    place = str(name_or_dir)
    found = load_hf_encoder(f"hf:{place}", place, only_images=True)
    assert isinstance(found, HFBackbone)
    return found


def load_hf_encoder(
    name: str, place: str, *, only_images: bool = False
) -> HFBackbone | TextEncoder:
    """Load a model of images or of text: what it takes in says which.

    Parameters
    ----------
    name : str
        What messages call it.
    place : str
        A folder that ``save_pretrained`` wrote, or a name on the Hugging Face hub.
    only_images : bool
        Refuse a model of text.
    """
    models = _transformers(name)
    try:
        with _quiet():
            model, report = models.AutoModel.from_pretrained(
                place, output_loading_info=True, use_safetensors=True
            )
            processor = _processor_config(place)
    except Exception as error:  # transformers raises many kinds
        if isinstance(error, MemoryError):
            raise
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{name}: not loaded; it must be a folder with config.json and "
            f"model.safetensors, or a name on the hub ({reason[:300]})"
        ) from error
    takes = getattr(model, "main_input_name", "")
    is_image = takes == "pixel_values" or hasattr(model, "get_image_features")
    is_text = takes == "input_ids" and not is_image and not only_images
    if not (is_image or is_text):
        kinds = "images" if only_images else "images or of text"
        raise ValueError(f"{name}: {type(model).__name__} is not a model of {kinds}")
    missing = sorted(report["missing_keys"])
    # A checkpoint of a classifier often lacks the pooler, which would be random.
    lacking = [key for key in missing if "pooler" not in key]
    if lacking:
        raise ValueError(f"{name}: its file lacks weights, such as {lacking[0]}")
    if is_text:
        with _quiet():
            return as_text_encoder(name, place, model)
    return HFBackbone(model, processor, use_pooler=not missing)


def rebuild_hf_backbone(recipe: Mapping[str, Any]) -> HFBackbone:
    """Make the same backbone from its ``recipe``, for weights that are loaded later."""
    models = _transformers("this model")
    try:
        kind = models.CONFIG_MAPPING[recipe["model"]["model_type"]]
        model = models.AutoModel.from_config(kind.from_dict(recipe["model"]))
        return HFBackbone(
            model, dict(recipe["processor"]), use_pooler=bool(recipe["use_pooler"])
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a model that transformers knows ({error})") from error


@contextmanager
def offline() -> Iterator[None]:
    """Ask no hub for anything on the way, whatever a file names."""
    try:
        from huggingface_hub import constants
    except ImportError:  # nobody here who could ask
        yield
        return
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _transformers(what: str) -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ValueError(
            f"{what} needs transformers: pip install 'stct[encoders]'"
        ) from error
    return transformers


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
