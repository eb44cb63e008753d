"""Machines with fewer support vectors."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError

from maxmargin import SVC, SVR, InputError, OneClassSVM


def moons():
    return make_moons(300, noise=0.2, random_state=0)


@pytest.mark.parametrize("tol", [0.1, 1e-3])
@pytest.mark.parametrize("machine", [SVC(C=10.0), SVR(C=10.0), OneClassSVM(nu=0.3)])
def test_scores_stay_within_the_bound(machine, tol):
    X, y = moons()
    machine.fit(X, y)
    small = machine.compress(tol)
    points = np.random.default_rng(0).uniform(-3, 3, (500, 2))
    score = (lambda m: m.predict(points)) if isinstance(machine, SVR) else (lambda m: m.decision_function(points))
    changed = np.abs(score(small) - score(machine)).max()
    assert changed <= small.compression_bound_[0] * (1 + 1e-9) <= tol * (1 + 1e-9)
    assert len(small.support_) < len(machine.support_)
    assert small.support_vectors_.shape == (len(small.support_), 2)
    assert set(small.support_) <= set(machine.support_)
    assert not hasattr(small, "certificate_")
    assert hasattr(machine, "certificate_")


def test_pairs_of_classes_keep_their_layout():
    X, y = load_iris(return_X_y=True)
    machine = SVC(decision_function_shape="ovo").fit(X, y)
    small = machine.compress(0.01)
    assert small.n_support_.sum() == len(small.support_) < len(machine.support_)
    changed = np.abs(small.decision_function(X) - machine.decision_function(X)).max(axis=0)
    assert (changed <= small.compression_bound_).all()
    assert (small.compression_bound_ <= 0.01).all()


def test_what_cannot_be_compressed_says_so():
    X, y = moons()
    with pytest.raises(NotFittedError):
        SVC().compress()
    with pytest.raises(InputError, match="greater than 0"):
        SVC().fit(X, y).compress(0.0)
    with pytest.raises(InputError, match="precomputed"):
        SVC(kernel="precomputed").fit(X @ X.T, y).compress()
    with pytest.raises(InputError, match="inner product"):
        SVC(kernel="sigmoid").fit(X, y).compress()
