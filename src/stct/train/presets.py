"""Settings by name: the paper's, and what two cores can do."""

from dataclasses import replace

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


def _cifar10(width: int = 2, num_neighbors: int = 2000) -> Config:
    return Config(
        encoder=Encoder(width=width),
        select=Select(num_neighbors=num_neighbors, keep_per_round=0.25),
        num_rounds=4,
        pretrain=Pretrain(epochs=400),
        srl=SRL(
            steps=10_000,
            learning_rate=0.03,
            target_temperature=0.05,
            threshold="adaptive",
        ),
    )


def _clothing1m() -> Config:
    return Config(
        num_rounds=3,
        image_size=224,
        encoder=Encoder(name="hf:microsoft/resnet-50"),
        pretrain=Pretrain(epochs=0),  # the encoder starts from ImageNet
        select=Select(keep_per_round=1 / 3),
        srl=SRL(
            steps=10_000,
            unlabeled_batch_size=192,
            target_temperature=0.05,
            threshold="adaptive",
        ),
    )


def _printed(config: Config) -> Config:
    """Change what the paper prints otherwise than we would do it.

    ``--set correct.method=paper`` takes Eq. (9) to the letter as well.
    """
    return replace(
        config,
        noisy_validation=0.0,
        correct=replace(config.correct, method="split"),
        srl=replace(config.srl, soft_labels=False, unlabeled="unselected"),
    )


def _paper_cifar10() -> Config:
    return _printed(Config())


def _paper_cifar100() -> Config:
    return _printed(Config(encoder=Encoder(width=8), select=Select(num_neighbors=300)))


def _paper_clothing1m() -> Config:
    return _printed(
        Config(
            image_size=224,
            encoder=Encoder(name="hf:microsoft/resnet-50"),
            pretrain=Pretrain(epochs=0),
            srl=SRL(confidence=0.7, unlabeled_batch_size=192),
        )
    )


def _photos() -> Config:
    return Config(
        num_rounds=3,
        image_size=224,
        encoder=Encoder(name="efficientnet-lite0"),
        augment=Augment(min_crop=0.5),
        pretrain=Pretrain(epochs=0),  # the encoder starts from ImageNet
        select=Select(num_neighbors=50, keep_per_round=0.5),
        srl=SRL(
            steps=300,
            batch_size=32,
            unlabeled_batch_size=32,
            num_anchors=32,
            optimizer="adamw",
            learning_rate=5e-4,
            weight_decay=0.05,
            layer_decay=0.85,
            target_temperature=0.05,
            consistency_weight=0.2,
            threshold="adaptive",
        ),
    )


PRESETS = {
    "tiny": _tiny,  # digits and the like, about a minute on two cores
    "cpu": _cpu,  # 32 x 32 colour images on a laptop
    "photos": _photos,  # any photos, from ImageNet features
    "cifar10": _cifar10,  # for a GPU, as we would train today
    "cifar100": lambda: _cifar10(width=8, num_neighbors=300),
    "clothing1m": _clothing1m,
    "paper-cifar10": _paper_cifar10,  # what is printed, for a GPU
    "paper-cifar100": _paper_cifar100,
    "paper-clothing1m": _paper_clothing1m,
}


def preset(name: str) -> Config:
    """Give the settings called ``name``."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]()
