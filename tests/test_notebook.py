"""What a notebook shows of a fitted corrector."""

import inspect
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from noisy_rows import blobs
from sklearn.exceptions import NotFittedError

from stct import LabelCorrector, MultiLabelCorrector, NumericLabelChecker
from stct.displays import TransitionMatrixDisplay

mpl.use("Agg")


@pytest.fixture(scope="module")
def fitted():
    X, given, _ = blobs(n=300)
    names = pd.Series(np.array(["<cat>", "dog", "fox"])[given], range(7, 307))
    return X, names, LabelCorrector().fit(X, names)


def test_a_frame_has_the_rows_and_their_names(fitted):
    _, names, m = fitted
    frame = m.to_frame()
    assert frame.index.equals(names.index)
    assert frame["given"].equals(names.rename("given"))
    assert (frame["label"] == m.labels_).all()
    changed = frame["given"] != frame["label"]
    assert (frame["action"][changed] == "relabel").all()
    with pytest.raises(NotFittedError):
        LabelCorrector().to_frame()


def test_pictures_draw_the_fitted_numbers(fitted):
    _, _, m = fitted
    display = m.plot_transition_matrix()
    shown = display.ax_.images[0].get_array()
    np.testing.assert_allclose(shown, m.transition_matrix_)
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == [*m.classes_]
    display = m.plot_confidence()
    drawn = sum(patch.get_height() for patch in display.ax_.patches)
    assert drawn == len(m.labels_)
    display = m.plot_accuracy()
    before, after = (patch.get_width() for patch in display.ax_.patches)
    assert (before, after) == tuple(m.estimated_accuracy_[:2])
    again = m.plot_accuracy(ax=display.ax_)
    assert again.figure_ is display.figure_
    mpl.pyplot.close("all")


def test_many_classes_show_those_with_the_most_errors():
    T = np.diag(np.linspace(0.2, 1.0, 80))
    display = TransitionMatrixDisplay(T, np.arange(80)).plot()
    assert display.ax_.images[0].get_array().shape == (30, 30)
    assert "30 of 80 classes" in display.ax_.get_title()
    mpl.pyplot.close("all")


def test_without_matplotlib_one_line_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'stct\[plot\]'"):
        fitted[2].plot_accuracy()


def test_html_says_what_was_found_and_escapes_labels(fitted):
    m = fitted[2]
    html = m._repr_mimebundle_()["text/html"]
    assert "300 in 3 classes" in html
    assert "&lt;cat&gt;" in html
    assert "<cat>" not in html
    assert "stct-summary" in m._repr_html_()
    assert "stct-summary" not in LabelCorrector()._repr_html_()


def test_comparison_counts_what_differs(fitted):
    X, names, m = fitted
    other = LabelCorrector().fit(X, names, locked=np.ones(300, dtype=bool))
    c = m.compare(other)
    assert len(c.differing) == (m.labels_ != other.labels_).sum() > 10
    assert c.agreement == pytest.approx(1.0 - len(c.differing) / 300)
    frame = c.to_frame()
    assert (frame["label"] != frame["other_label"]).all()
    assert c.actions.to_numpy().sum() == 300
    assert f"{len(c.differing)} differ" in str(c)
    assert m.compare(m).agreement == 1.0
    with pytest.raises(ValueError, match="300 rows and the other to 299"):
        m.compare(LabelCorrector().fit(X[1:], names[1:]))


@pytest.mark.parametrize(
    "kind", [LabelCorrector, MultiLabelCorrector, NumericLabelChecker]
)
def test_signatures_fit_on_a_few_lines(kind):
    for method in (
        kind.__init__,
        kind.fit,
        kind.fit_correct if kind is not NumericLabelChecker else kind.predict,
    ):
        assert len(str(inspect.signature(method))) < 500
        assert "_SupportsArray" not in str(inspect.signature(method))
