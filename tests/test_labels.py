from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.data import open as open_data
from hogwild.errors import DataError, ParameterError
from hogwild.losses import LOSSES, named
from hogwild.problems.label_encoding import LabelEncoding, label_encoding_for

CLASSES = st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True).map(sorted)


def data(labels):
    """A data set of which only the labels matter."""
    return open_data(np.zeros((len(labels), 1)), labels)


@settings(deadline=None)
@given(CLASSES, st.randoms())
def test_encoded_labels_are_signs_or_class_numbers(classes, random):
    labels = np.array([random.choice(classes) for _ in range(20)], float)
    encoded = LabelEncoding(np.array(classes, float)).encode(labels)
    assert encoded.dtype == np.float32
    if len(classes) == 2:
        assert set(encoded) <= {-1.0, 1.0}
        encoded = (encoded + 1) / 2
    np.testing.assert_array_equal(np.array(classes)[encoded.astype(int)], labels)


@settings(deadline=None)
@given(CLASSES, st.floats(-60, 60))
def test_a_label_unknown_in_training_is_refused(classes, label):
    labels = LabelEncoding(np.array(classes, float))
    if label in classes:
        labels.encode(np.array([label]))
        return
    with pytest.raises(DataError, match=r"is not one of the classes the model knows.*same labels"):
        labels.encode(np.array([float(classes[0]), label]))


@pytest.mark.parametrize(("classes", "outputs"), [(None, 1), ([0, 1], 1), ([0, 1, 2], 3), (range(7), 7)])
def test_outputs(classes, outputs):
    assert LabelEncoding(None if classes is None else np.array(classes, float)).outputs == outputs


def test_numbers_stay_what_they_are():
    labels = label_encoding_for(LOSSES["squared"], data(np.array([0.5, -3.25])))
    assert labels.classes is None
    assert labels.describe() is None
    assert labels.encode(np.array([0.5, -3.25])).tolist() == [0.5, -3.25]


def test_classes_are_found_in_the_data():
    labels = label_encoding_for(LOSSES["hinge"], data(np.array([7.0, 3.0, 7.0])))
    assert labels.describe() == [3.0, 7.0]
    assert label_encoding_for(LOSSES["softmax"], data(np.array([2.0, 0.0, 1.0]))).describe() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.targets == "classes"], ids=str)
def test_one_class_is_none(loss):
    with pytest.raises(DataError, match=r"arrays: every label is 1\. The loss '.*' needs at least two classes"):
        label_encoding_for(loss, data(np.ones(5)))


def test_numbers_are_no_classes():
    with pytest.raises(DataError, match=r"numbers such as 0\.5 and 1, not classes.*use 'squared' or 'huber'"):
        label_encoding_for(LOSSES["logistic"], data(np.array([0.5, 1.0, 2.0])))
    with pytest.raises(DataError, match="not classes"):
        label_encoding_for(LOSSES["logistic"], data(np.arange(10_001.0)))


def test_poisson_is_for_counts():
    labels = label_encoding_for(LOSSES["poisson"], data([0.0, 2.0]))
    assert labels.encode(np.array([0.0, 3.0])).tolist() == [0, 3]
    with pytest.raises(DataError, match=r"label -2 is negative.*for counts"):
        labels.encode(np.array([1.0, -2.0]))


def test_a_loss_of_ones_own_takes_numbers():
    assert label_encoding_for(named(lambda z, y: (z, 1.0)), data(np.array([1.0, 1.0]))).classes is None


# Class weights


THREE = LabelEncoding(np.array([0.0, 1.0, 5.0]))


def test_without_class_weights_all_are_one():
    assert THREE.weights(None, data([0.0])).tolist() == [1, 1, 1]
    assert LabelEncoding(None).weights(None, data([0.0])).tolist() == [1, 1]


def test_class_weights_go_by_label():
    weights = THREE.weights({5: 3.0, 0: 0.5}, data([0.0]))
    assert weights.tolist() == [0.5, 1, 3]
    assert weights.dtype == np.float32


@settings(deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 5.0]), min_size=3).filter(lambda labels: len(set(labels)) == 3))
def test_balanced_weights_are_those_of_scikit_learn(labels):
    from sklearn.utils.class_weight import compute_class_weight

    expected = compute_class_weight("balanced", classes=np.array([0.0, 1.0, 5.0]), y=labels)
    np.testing.assert_allclose(THREE.weights("balanced", data(labels)), expected, rtol=1e-6)


def test_balanced_weights_of_a_sample_without_some_class_are_finite():
    assert np.isfinite(THREE.weights("balanced", data([0.0, 0.0, 5.0]))).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({7: 1.0}, "names the label 7, which is not in the data"),
        ("even", "The 'class_weight' parameter must be a mapping from label to weight, 'balanced' or None"),
        ([1.0, 2.0, 3.0], "must be a mapping"),
        ({0: -1.0}, "finite weights of at least 0"),
        ({0: float("nan")}, "finite weights of at least 0"),
    ],
)
def test_wrong_class_weights_are_refused(weights, message):
    with pytest.raises(ParameterError, match=message):
        THREE.weights(weights, data([0.0, 1.0, 5.0]))


def test_numbers_have_no_class_weights():
    with pytest.raises(ParameterError, match="'class_weight' parameter is for classes"):
        LabelEncoding(None).weights("balanced", data([1.0]))
