"""`STCT`: fit, predict, embed, save, load; whatever holds images and labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_train_algorithm import CONFIG, pictures
from torch import nn
from torch.utils.data import TensorDataset

from stct.train import STCT

NAMES = np.array(["north", "east", "south", "west"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    images, truth = pictures(200, rng)
    given = np.where(rng.random(200) < 0.3, rng.integers(0, 4, 200), truth)
    return images, NAMES[truth], NAMES[given]


@pytest.fixture(scope="module")
def fitted(data):
    images, _, given = data
    return STCT(config=CONFIG, seed=0).fit(images, given)


def test_labels_come_back_in_their_own_type_and_better(data, fitted):
    _, truth, given = data
    assert fitted.labels_.dtype == given.dtype
    assert np.mean(fitted.labels_ == truth) > np.mean(given == truth) + 0.1
    assert set(fitted.action_) <= {"keep", "relabel", "abstain"}
    assert fitted.confidence_.shape == (200,)
    assert [entry["round"] for entry in fitted.history_] == [1, 2]


def test_predictions_are_probabilities_of_named_classes(data, fitted):
    images, truth, _ = data
    P = fitted.predict_proba(images)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-5)
    assert np.mean(fitted.predict(images) == truth) > 0.7
    np.testing.assert_array_equal(fitted.classes_, sorted(NAMES))
    assert fitted.embed(images).shape == (200, 64)


def test_save_and_load_predict_the_same(data, fitted, tmp_path):
    images, *_ = data
    fitted.save(tmp_path / "model.safetensors")
    loaded = STCT.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(images), fitted.predict(images))
    np.testing.assert_array_equal(loaded.embed(images), fitted.embed(images))
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)


def test_a_torch_dataset_gives_the_same_as_arrays(data):
    images, *_ = data
    codes = np.arange(200) % 4
    config = replace(CONFIG, num_rounds=1)
    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(codes))
    a = STCT(config=config).fit(dataset)
    b = STCT(config=config).fit(images, codes)
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_array_equal(a.predict_proba(images), b.predict_proba(images))


def test_your_own_network(data, tmp_path):
    images, _, given = data
    torch.manual_seed(0)

    def mine():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU())

    model = STCT(config=CONFIG, encoder=mine()).fit(images, given)
    assert model.embed(images).shape == (200, 32)
    model.save(tmp_path / "mine.safetensors")
    with pytest.raises(ValueError, match="encoder="):
        STCT.load(tmp_path / "mine.safetensors")
    again = STCT.load(tmp_path / "mine.safetensors", encoder=mine())
    np.testing.assert_array_equal(again.predict(images), model.predict(images))
    with pytest.raises(ValueError, match="weights of another network"):
        STCT.load(
            tmp_path / "mine.safetensors",
            encoder=nn.Sequential(nn.Flatten(), nn.Linear(64, 8)),
        )


def test_your_own_network_stays_as_it_is_and_dropout_is_seeded(data):
    images, _, given = data
    mine = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5))
    before = [p.clone() for p in mine.parameters()]
    config = replace(CONFIG, num_rounds=1)
    model = STCT(config=config, encoder=mine)
    predicted = []
    for seed in (1, 2):  # torch's own generator may stand anywhere, and is not moved
        torch.manual_seed(seed)
        state = torch.get_rng_state()
        predicted.append(model.fit(images, given).predict_proba(images))
        assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(*predicted)
    for old, new in zip(before, mine.parameters(), strict=True):
        assert torch.equal(old, new)


class Items(torch.utils.data.Dataset):
    """A dataset of whatever items it is given."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_datasets_of_tensors_pairs_and_views(data):
    images, _, given = data
    config = replace(CONFIG, num_rounds=1, srl=replace(CONFIG.srl, steps=2))
    expected = STCT(config=config).fit(images, given).predict_proba(images)
    torch_order = [torch.from_numpy(image).permute(2, 0, 1) for image in images]
    pairs = [[x, y] for x, y in zip(torch_order, given, strict=True)]
    upside_down = images[:, ::-1].copy()
    for source, labels in (
        (Items(pairs), None),
        (Items([tuple(pair) for pair in pairs]), None),
        (Items(torch_order), given),
        (np.broadcast_to(images, images.shape), given),  # read-only
        (upside_down[:, ::-1], given),  # negative strides
    ):
        model = STCT(config=config).fit(source, labels)
        np.testing.assert_array_equal(model.predict_proba(images), expected)
    with pytest.raises(ValueError, match="holds no images"):
        STCT(config=config).fit(Items([]))


def test_a_table_with_a_label_column_and_a_bad_file(data, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    images, _, given = data
    lines = ["path,kind"]
    for i, (image, label) in enumerate(zip(images[:60], given[:60], strict=True)):
        image_module.fromarray(image[:, :, 0]).save(tmp_path / f"{i}.png")
        lines.append(f"{i}.png,{label}")
    (tmp_path / "bad.png").write_bytes(b"rubbish")
    table = tmp_path / "t.csv"
    table.write_text("\n".join([*lines, "bad.png,north"]) + "\n")
    config = replace(CONFIG, num_rounds=1, srl=replace(CONFIG.srl, steps=2))
    with pytest.raises(ValueError, match="bad.png"):
        STCT(config=config).fit(table, label_column="kind")
    model = STCT(config=config).fit(table, label_column="kind", skip_bad=True)
    assert len(model.labels_) == 60
    assert len(model.skipped_) == 1
    assert "bad.png" in model.skipped_[0]


def test_a_folder_of_class_folders(data, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    images, _, given = data
    for i, (image, label) in enumerate(zip(images[:80], given[:80], strict=True)):
        (tmp_path / label).mkdir(exist_ok=True)
        image_module.fromarray(image[:, :, 0]).save(tmp_path / label / f"{i:03d}.png")
    config = replace(CONFIG, num_rounds=1)
    model = STCT(config=config).fit(tmp_path)
    assert len(model.labels_) == 80
    assert set(model.predict(tmp_path)) <= set(NAMES)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((4, 8, 8)), [0, 1, 0, 1], "uint8"),
        (np.zeros((4, 8), np.uint8), [0, 1, 0, 1], r"\(n, height, width\)"),
        (np.zeros((4, 8, 8, 2), np.uint8), [0, 1, 0, 1], "1 or 3 channels"),
        (np.zeros((4, 5, 8), np.uint8), [0, 1, 0, 1], "8 x 8 or larger"),
        (np.zeros((4, 8, 8), np.uint8), [0, 1, 0], "4 images but 3 labels"),
        (np.zeros((4, 8, 8), np.uint8), None, "labels are missing"),
        (np.zeros((4, 8, 8), np.uint8), [1, 1, 1, 1], "two or more classes"),
    ],
)
def test_bad_input_says_what_is_allowed(images, labels, message):
    with pytest.raises(ValueError, match=message):
        STCT(config=CONFIG).fit(images, labels)


def test_another_size_and_an_unfitted_model_are_refused(fitted):
    with pytest.raises(ValueError, match="was trained on images of"):
        fitted.predict(np.zeros((2, 9, 9), np.uint8))
    with pytest.raises(ValueError, match="not fitted yet"):
        STCT().predict(np.zeros((2, 8, 8), np.uint8))
