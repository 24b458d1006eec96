"""Settings by name: the paper's, and what two cores can do."""

from stct.train.config import SRL, Augment, Config, Encoder, Pretrain, Select


def _tiny() -> Config:
    return Config(
        num_rounds=3,
        encoder=Encoder(depth=10, width=1, projection=64),
        augment=Augment(flip=False, magnitude=0.5, cutout=0.25, min_crop=0.4),
        pretrain=Pretrain(epochs=120, batch_size=256, learning_rate=0.3),
        select=Select(num_neighbors=40, keep_per_round=1 / 3),  # in the end all
        srl=SRL(
            steps=200,
            unlabeled_batch_size=128,
            num_anchors=128,
            learning_rate=0.02,
            target_temperature=0.05,
        ),
    )


def _cpu() -> Config:
    return Config(
        num_rounds=4,
        encoder=Encoder(depth=10, width=2, stem_stride=2),
        # Smaller views are nearly twice as fast: twice the epochs.
        pretrain=Pretrain(epochs=80, batch_size=256, learning_rate=0.3, size=0.75),
        # Few images: all soft labels are worth more than the surest of them.
        select=Select(num_neighbors=200, keep_per_round=0.5),
        srl=SRL(
            steps=500,
            batch_size=128,
            unlabeled_batch_size=64,
            num_anchors=64,
            learning_rate=0.03,
            target_temperature=0.05,
            consistency_weight=0.2,
        ),
    )


def _cifar100() -> Config:
    return Config(
        encoder=Encoder(width=8),
        select=Select(num_neighbors=300),
    )


def _clothing1m() -> Config:
    return Config(
        image_size=224,
        encoder=Encoder(name="hf:microsoft/resnet-50"),
        pretrain=Pretrain(epochs=0),  # the encoder starts from ImageNet
        srl=SRL(confidence=0.7, unlabeled_batch_size=192),
    )


PRESETS = {
    "tiny": _tiny,  # digits and the like, about a minute on two cores
    "cpu": _cpu,  # 32 x 32 colour images on a laptop
    "cifar10": Config,  # the paper's; for a GPU
    "cifar100": _cifar100,
    "clothing1m": _clothing1m,
}


def preset(name: str) -> Config:
    """Give the settings called ``name``."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]()
