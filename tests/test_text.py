"""Texts: TF-IDF with scikit-learn alone, frozen models of text, what is refused."""

import csv
import json
import sys

import numpy as np
import pytest
import torch
from hf_models import save_model, save_text_model

from stct import LabelCorrector, cli
from stct.data.tables import read_table
from stct.encoders import embed_text, load_encoder
from stct.features import read_recipe

TOPICS = {
    "card": ["my card was lost", "the card is stolen", "send a new card", "block card"],
    "loan": ["repay the loan", "interest on my loan", "apply for loans", "loan denied"],
    "login": ["forgot password", "cannot sign in", "reset my password", "login fails"],
}
FILLERS = ["please", "today", "again", "hello", "why", "thanks", "urgent", "help me"]


def support(num=240, wrong=0.15, seed=0):
    """Short texts on three topics, of which some have the label of another one."""
    rng = np.random.default_rng(seed)
    names = list(TOPICS)
    truth = [names[i % 3] for i in range(num)]
    texts = [
        f"{rng.choice(FILLERS)} {rng.choice(TOPICS[t])} {rng.choice(FILLERS)} {i}"
        for i, t in enumerate(truth)
    ]
    given = [str(rng.choice(names)) if rng.random() < wrong else t for t in truth]
    return texts, np.array(truth), given


def write_table(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command inside this process, in the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["stct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 0

    return run


# TF-IDF


def test_texts_with_wrong_labels_are_corrected(tmp_path, run, capsys):
    texts, truth, given = support()
    write_table(tmp_path / "t.csv", ["text", "label"], zip(texts, given, strict=True))
    run("correct", "t.csv", "--text-column", "text", "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary["features"]["kind"] == "tfidf"
    assert summary["images"] is None
    assert any("'text' was read by TF-IDF" in note for note in summary["notes"])
    labels = read_table(tmp_path / "stct-output" / "labels.csv").values("label")
    assert np.mean(np.array(given) == truth) < 0.95
    assert np.mean(np.array(labels) == truth) > 0.99
    # What it learnt gives the same numbers again, and new texts their topic.
    recipe = read_recipe(tmp_path / "stct-output" / "features.npz")
    table = read_table(tmp_path / "t.csv")
    X = embed_text(texts)
    np.testing.assert_array_equal(recipe.transform(table, tmp_path / "t.csv"), X)
    more, topics, _ = support(60, seed=1)
    write_table(tmp_path / "new.csv", ["text"], [[text] for text in more])
    new = read_table(tmp_path / "new.csv")
    corrector = LabelCorrector().fit(X, given)
    predicted = corrector.predict(recipe.transform(new, tmp_path / "new.csv"))
    assert np.mean(predicted == topics) > 0.95


def test_tfidf_is_the_weighted_svd_of_its_counts():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, _, _ = support(40)
    word = TfidfVectorizer(
        sublinear_tf=True, min_df=2, ngram_range=(1, 2), token_pattern=r"\b\w+\b"
    )
    part = TfidfVectorizer(
        sublinear_tf=True, min_df=2, ngram_range=(3, 5), analyzer="char_wb"
    )
    counts = np.hstack([v.fit_transform(texts).toarray() for v in (word, part)])
    U, s, _ = np.linalg.svd(counts, full_matrices=False)
    rank = int((s > 1e-4).sum())
    expected = U[:, :rank] * np.sqrt(s[:rank])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = embed_text(texts)
    cosines = expected @ expected.T
    np.testing.assert_allclose(found @ found.T, cosines, atol=0.02)


def test_long_texts_are_cut_and_said():
    texts, _, _ = support(30)
    with pytest.warns(UserWarning, match=r"1 of 30 texts are longer than 20,000"):
        long = embed_text([texts[0] + " card" * 30_000, *texts[1:]])
    assert len(long) == 30


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "column 'text', row 2 (counting from 0) has an empty text"),
        ("   ", "has an empty text"),
        ("\x01\x02\x03\x04 ab", "row 2 (counting from 0) holds binary data"),
    ],
)
def test_rows_without_text(tmp_path, monkeypatch, refuse, run, value, says):
    monkeypatch.chdir(tmp_path)
    texts, _, given = support(60)
    rows = [list(row) for row in zip(texts, given, strict=True)]
    rows[2][0] = value
    write_table(tmp_path / "t.csv", ["text", "label"], rows)
    command = ["correct", "t.csv", "--text-column", "text"]
    refuse(*command, says=says)
    assert not (tmp_path / "stct-output").exists()
    run("correct", "t.csv", "--skip-bad", "--quiet")  # the column is found
    ids = read_table(tmp_path / "stct-output" / "labels.csv").values("id")
    assert ids[:4] == ["0", "1", "3", "4"]


def test_columns_and_texts_that_are_none(tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    command = ["correct", "t.csv", "--text-column"]
    write_table(tmp_path / "t.csv", ["text", "label"], [["!!", "a"], ["??", "b"]] * 5)
    refuse(*command, "body", says="no column 'body' (set --text-column)")
    refuse(*command, "text", says="no words in common")
    refuse(*command, "text", "--embeddings", "e.npy", says="one of them")
    refuse(*command, "text", "--encoder", "efficientnet-lite0", says="model of images")
    rows = "".join(f'{{"text": {i}, "label": "{"ab"[i % 2]}"}}\n' for i in range(9))
    (tmp_path / "t.jsonl").write_text(rows)
    refuse(
        *("correct", "t.jsonl", "--text-column", "text"),
        says="row 0 (counting from 0) holds int, not text; for columns of numbers use",
    )
    with pytest.raises(ValueError, match="got one text"):
        embed_text("a text")
    with pytest.raises(ValueError, match=r"text 1 .* is int, not str"):
        embed_text(["a", 1])


def test_a_recipe_that_is_none(tmp_path):
    path = tmp_path / "features.npz"
    for arrays in ({"x": np.ones(3)}, {"recipe": np.frombuffer(b"{}", np.uint8)}):
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match="not a recipe of features"):
            read_recipe(path)


# Frozen models of text


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "max_tokens"])
def test_texts_are_pooled_as_the_files_of_the_model_say(tmp_path, pooling):
    model, tokenizer = save_text_model(tmp_path, pooling=pooling)
    texts = ["card lost", "the new pin", "lost", "new card the pin", "card lost"]
    encoder = load_encoder(f"hf:{tmp_path}")
    got = embed_text(texts, encoder, batch_size=2)
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        out = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None].bool()
    expected = {
        "mean_tokens": (out * mask).sum(dim=1) / mask.sum(dim=1),
        "cls_token": out[:, 0],
        "max_tokens": out.masked_fill(~mask, -torch.inf).amax(dim=1),
    }[pooling]
    expected = expected / expected.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)
    np.testing.assert_array_equal(got[0], got[4])


def test_known_texts_are_not_embedded_again(tmp_path, monkeypatch):
    save_text_model(tmp_path / "m", normalise=False)
    texts, shares = ["card", "new card", "lost pin", "the pin"], []
    encoder = load_encoder(f"hf:{tmp_path / 'm'}")
    settings = {"cache_dir": tmp_path / "c", "progress": shares.append}
    with pytest.warns(UserWarning, match="1 of 5 texts are longer than the 8 tokens"):
        first = embed_text([*texts, "card " * 9], encoder, **settings)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    seen = []
    forward = type(encoder).forward
    monkeypatch.setattr(
        type(encoder), "forward", lambda e, t: seen.extend(t) or forward(e, t)
    )
    again = embed_text([*texts[::-1], "pin"], encoder, **settings)
    np.testing.assert_array_equal(again[:4], first[3::-1])
    assert len(seen) == 1


def test_models_that_do_not_fit(tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    texts, _, given = support(30)
    write_table(tmp_path / "t.csv", ["text", "label"], zip(texts, given, strict=True))
    command = ["correct", "t.csv", "--encoder"]
    save_text_model(tmp_path / "bert")
    write_table(tmp_path / "n.csv", ["size", "label"], [[5, 0], [7, 1]] * 4)
    refuse("correct", "n.csv", "--encoder", "hf:bert", says="needs --text-column NAME")
    save_model(tmp_path / "vit", "vit")
    refuse(*command, "hf:vit", "--text-column", "text", says="is a model of images")
    save_model(tmp_path / "bare", "bert")
    refuse(*command, "hf:bare", "--text-column", "text", says="needs its tokenizer")
    (tmp_path / "empty").mkdir()
    refuse(*command, "hf:empty", "--text-column", "text", says="hf:empty: not loaded")
    refuse(*command, "nothing", "--text-column", "text", says="unknown encoder")
    save_text_model(tmp_path / "odd", pooling="weightedmean_tokens")
    with pytest.raises(ValueError, match="pooling_mode_weightedmean_tokens is not"):
        load_encoder(f"hf:{tmp_path / 'odd'}")
    path = tmp_path / "bert" / "modules.json"
    path.write_text(path.read_text().replace("Normalize", "Dense"))
    with pytest.raises(ValueError, match="its part Dense is not supported"):
        load_encoder(f"hf:{tmp_path / 'bert'}")


@pytest.mark.slow
def test_minilm_knows_what_texts_mean(tmp_path, run):
    texts = ["my card was stolen", "somebody took my credit card", "how is the weather"]
    X = embed_text(texts, "minilm")
    assert X.shape == (3, 384)
    assert X[0] @ X[1] > X[0] @ X[2] + 0.3
    texts, _, given = support(30)
    write_table(tmp_path / "t.csv", ["text", "label"], zip(texts, given, strict=True))
    more = ["--text-column", "text", "--encoder", "minilm", "--cache-dir", "cache"]
    run("correct", "t.csv", *more, "--quiet")
    recipe = read_recipe(tmp_path / "stct-output" / "features.npz")
    X = recipe.transform(read_table(tmp_path / "t.csv"), tmp_path / "t.csv")
    np.testing.assert_allclose(X, embed_text(texts, "minilm"), atol=1e-5)
