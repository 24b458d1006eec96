"""Small transformers models with random weights, saved as their own code saves them."""

import json

import torch
import transformers

SIZE = 16
_SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
_VISION = {**_SMALL, "image_size": SIZE, "patch_size": 8}
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]


def save_model(folder, kind):
    """Save a dinov2, vit, vit-classifier, clip, resnet or bert model; give it."""
    torch.manual_seed(0)
    model = _make(kind)
    model.save_pretrained(folder)
    if kind == "bert":
        return model
    settings = {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": 20},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": SIZE, "width": SIZE},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": MEAN,
        "image_std": STD,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return model.eval()


def _make(kind):
    if kind == "dinov2":
        return transformers.Dinov2Model(transformers.Dinov2Config(**_VISION))
    if kind == "vit":
        return transformers.ViTModel(transformers.ViTConfig(**_VISION))
    if kind == "vit-classifier":
        config = transformers.ViTConfig(**_VISION)
        return transformers.ViTForImageClassification(config)
    if kind == "clip":
        config = transformers.CLIPConfig(
            vision_config=_VISION,
            text_config={**_SMALL, "vocab_size": 20},
            projection_dim=12,
        )
        return transformers.CLIPModel(config)
    if kind == "resnet":
        config = transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 24], depths=[1, 1], layer_type="basic"
        )
        return transformers.ResNetModel(config)
    assert kind == "bert"
    return transformers.BertModel(transformers.BertConfig(**_SMALL, vocab_size=20))


def save_text_model(folder, *, pooling="mean_tokens", normalise=True, most_tokens=8):
    """Save a bert with a tokenizer of words, as sentence-transformers lays it out."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "card", "lost", "pin", "new", "the"]
    places = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(places, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", model_max_length=512
    )
    fast.save_pretrained(folder)
    model = save_model(folder, "bert").eval()
    modules = ["Transformer", "Pooling", *(["Normalize"] if normalise else [])]
    paths = ["", "1_Pooling", "2_Normalize"]
    _write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"some.module.{kind}"}
            for i, (kind, path) in enumerate(zip(modules, paths, strict=False))
        ],
    )
    kinds = ("cls_token", "mean_tokens", "max_tokens", "weightedmean_tokens")
    (folder / "1_Pooling").mkdir()
    settings = {f"pooling_mode_{kind}": kind == pooling for kind in kinds}
    _write_json(folder / "1_Pooling" / "config.json", settings)
    sizes = {"max_seq_length": most_tokens, "do_lower_case": False}
    _write_json(folder / "sentence_bert_config.json", sizes)
    return model, fast


def _write_json(path, content):
    path.write_text(json.dumps(content))
