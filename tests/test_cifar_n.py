"""Human labels in the forms in which their authors publish them."""

import os

import numpy as np
import pytest
import torch
from cifar_files import write_cifar10

from stct.data.cifar import read_cifar
from stct.data.cifar_n import read_cifar_n, with_human_labels


def cifar10n(clean):
    """All sets of CIFAR-10N; the aggregate has every fifth label wrong."""
    wrong = (clean + 1) % 3
    fifth = np.arange(len(clean)) % 5 == 0
    return {
        "clean_label": clean,
        "aggre_label": np.where(fifth, wrong, clean),
        "worse_label": np.where(fifth, clean, wrong),
        **{f"random_label{i}": clean for i in (1, 2, 3)},
    }


def write_npy(content, path):
    np.save(path, np.array(content), allow_pickle=True)


def write_old_torch(content, path):
    torch.save(content, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (torch.save, "CIFAR-10_human.pt"),
        (write_old_torch, "CIFAR-10_human.pt"),
        (write_npy, "CIFAR-10_human.npy"),
    ],
)
def test_all_forms_of_the_file(tmp_path, write, name):
    clean = np.arange(20) % 3
    write(cifar10n(clean), tmp_path / name)
    sets = read_cifar_n(tmp_path / name)
    assert list(sets) == ["aggregate", "random1", "random2", "random3", "worst"]
    assert sets["aggregate"].noise_rate == 0.2
    assert sets["worst"].noise_rate == 0.8
    assert sets["random2"].noise_rate == 0.0
    np.testing.assert_array_equal(sets["worst"].clean, clean)


def test_cifar100n(tmp_path):
    content = {
        "clean_label": np.array([0, 1, 2, 3]),
        "noisy_label": np.array([0, 1, 2, 0]),
        "clean_coarse_label": np.array([0, 0, 1, 1]),
        "noisy_coarse_label": np.array([0, 1, 0, 1]),
    }
    torch.save(content, tmp_path / "CIFAR-100_human.pt")
    sets = read_cifar_n(tmp_path / "CIFAR-100_human.pt")
    rates = {name: human.noise_rate for name, human in sets.items()}
    assert rates == {"noisy": 0.25, "noisy_coarse": 0.5}


def cifar_images(folder, batches):
    _, checksums = write_cifar10(folder, batches=batches)
    return read_cifar(folder, checksums=checksums)


def whole_clean_labels():
    """The labels of five batches of 10,000, of which four rows each are written."""
    clean = np.zeros(50_000, dtype=np.int64)
    for batch in range(5):
        clean[batch * 10_000 + np.arange(4)] = np.arange(4) % 3
    return clean


def test_labels_go_to_the_right_images_when_batches_are_missing(tmp_path):
    images = cifar_images(tmp_path / "c", batches=(2, 5))
    content = cifar10n(whole_clean_labels())
    torch.save(content, tmp_path / "h.pt")
    human = with_human_labels(images, tmp_path / "h.pt", "aggregate")
    # Rows 10,000 to 10,003 and 40,000 to 40,003; those divisible by 5 are wrong.
    expected = ["automobile", "automobile", "bird", "airplane"] * 2
    assert human.labels.tolist() == expected
    assert human.notes[-1] == "human labels 'aggregate' of h.pt, noise rate 25.00%"
    assert images.labels[0] == "airplane"  # as it was
    with pytest.raises(ValueError, match="no set 'noisy'; it has aggregate"):
        with_human_labels(images, tmp_path / "h.pt", "noisy")


def test_another_order_is_an_error(tmp_path):
    images = cifar_images(tmp_path / "c", batches=(1,))
    clean = whole_clean_labels()
    clean[:4] = [0, 2, 1, 0]
    torch.save(cifar10n(clean), tmp_path / "h.pt")
    said = r"h.pt: .* in 2 of 4 rows, the first of them row 1 .*: another data set"
    with pytest.raises(ValueError, match=said):
        with_human_labels(images, tmp_path / "h.pt", "worst")
    torch.save(cifar10n(clean[:1]), tmp_path / "h.pt")
    with pytest.raises(ValueError, match="3 of 4 rows, the first of them row 1 "):
        with_human_labels(images, tmp_path / "h.pt", "worst")


@pytest.mark.parametrize("bad", [-1, 3, 200])
def test_a_label_that_is_no_class_is_an_error(tmp_path, bad):
    images = cifar_images(tmp_path / "c", batches=(2,))
    content = cifar10n(whole_clean_labels())
    content["worse_label"][10_002] = bad
    content["worse_label"][30_000] = -7  # of a batch that is not there
    torch.save(content, tmp_path / "h.pt")
    said = rf"h.pt: worse_label has the label {bad} in row 10002 .*allowed are 0 to 2"
    with pytest.raises(ValueError, match=said):
        with_human_labels(images, tmp_path / "h.pt", "worst")
    with_human_labels(images, tmp_path / "h.pt", "aggregate")


class Attack:
    def __reduce__(self):
        return os.mkdir, ("made",)


def test_files_that_are_something_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "h.pt"
    for content, message in [
        (Attack(), "wants to run posix.mkdir"),
        ({"worse_label": Attack()}, "wants to run posix.mkdir"),
        ({"weight": torch.zeros(2)}, "not a file of CIFAR-N"),
        ([1, 2], "it holds list"),
        ({"a": 1}, "no labels of CIFAR-N in it; it holds a"),
        (
            {"clean_label": np.zeros(3, int), "worse_label": np.zeros(2, int)},
            "2 labels",
        ),
        (
            {"clean_label": np.zeros(2), "worse_label": np.zeros(2, int)},
            "whole numbers",
        ),
    ]:
        torch.save(content, path)
        with pytest.raises(ValueError, match=message):
            read_cifar_n(path)
    np.save(tmp_path / "n.npy", np.zeros(3))
    with pytest.raises(ValueError, match="an array of float64, expected a dictionary"):
        read_cifar_n(tmp_path / "n.npy")
    path.write_text("text")
    with pytest.raises(ValueError, match="not a file of CIFAR-N"):
        read_cifar_n(path)
    assert not (tmp_path / "made").exists()
