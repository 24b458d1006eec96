"""A trained model as one ONNX file, for programs without torch."""

import json
import logging
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from stct.data.outputs import check_file, whole_file
from stct.train.model_file import load_model
from stct.train.networks import Network


class _Deployed(nn.Module):
    """Images as files have them to class probabilities."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """uint8 (n, h, w, c) to probabilities (n, C)."""
        x = images.permute(0, 3, 1, 2).float() / 255.0
        probabilities: Tensor = self.network(x, classify=True).logits.softmax(dim=1)
        return probabilities


def write_onnx(model: Path, output: Path, *, overwrite: bool = False) -> None:
    """Write ``images``, uint8 (n, h, w, c), to ``probabilities`` (n, C).

    The labels of the columns are a JSON list in the file's property ``classes``.

    Parameters
    ----------
    model : path
        A model.safetensors, or the folder of a run.
    output : path
        The file to write.
    overwrite : bool, default=False
        Replace it if it exists.
    """
    if output.suffix != ".onnx":
        raise ValueError(f"{output}: the name of an ONNX file ends in .onnx")
    check_file(output, overwrite=overwrite)
    absent = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if absent:
        raise ValueError(f"this needs {absent[0]}: pip install 'stct[onnx]'")
    network, about = load_model(model)
    channels, height, width = about.image_shape
    program = _export(_Deployed(network).eval(), (2, height, width, channels))
    program.model.metadata_props["classes"] = json.dumps(about.classes)
    with whole_file(output, overwrite=overwrite) as path:
        program.save(path, external_data=False)


def _export(deployed: nn.Module, shape: tuple[int, ...]) -> Any:
    example = torch.zeros(shape, dtype=torch.uint8)
    level = logging.getLogger("torch.onnx").level
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():  # of torch's own code
            warnings.simplefilter("ignore")
            return torch.onnx.export(
                deployed,
                (example,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
                input_names=["images"],
                output_names=["probabilities"],
                verbose=False,
            )
    finally:
        logging.getLogger("torch.onnx").setLevel(level)
