"""Small models of every shape the file format knows."""

import numpy as np
import pytest

from maxmargin import LinearSVC
from maxmargin.data import Encoding
from maxmargin.data.csv import parse_csv
from maxmargin.models import Model, Scaling, Training, trained_on
from tests.conftest import tall

CSV = b"age,town,weight,class\n30,Oslo,5,a\n41,Rome,7,b\n50,Oslo,,b\n22,Bern,6,a\n37,Rome,8,b\n28,Oslo,4,a\n"


def plain_model(labels=("no", "yes"), **params):
    X, y = tall(40, 3)
    y = np.where(y > 0, labels[1], labels[0])
    return Model(LinearSVC(**params).fit(X, y), trained_on(X, y, source="rows.svm"))


def table_model():
    table = parse_csv(CSV, "t.csv")
    encoding = Encoding.learn(table, missing="mean", text="onehot")
    X = encoding.apply(table)
    scaling = Scaling.learn(X)
    machine = LinearSVC(loss="hinge", class_weight={"a": 1.0, "b": 2.0}).fit(scaling.apply(X), table.y)
    training = trained_on(X, table.y, source="t.csv", target="class")
    return Model(machine, training, encoding, scaling, encoding.feature_names)


def subset_model():
    X, y = tall(40, 3)
    rows = np.arange(0, 40, 2)
    training = trained_on(X[rows], y[rows], rows=rows)
    return Model(LinearSVC().fit(X[rows], y[rows]), training)


MODELS = {
    "plain": plain_model,
    "integers": lambda: plain_model(labels=(-1, 1)),
    "booleans": lambda: plain_model(labels=(False, True)),
    "floats": lambda: plain_model(labels=(0.5e3, 2e3)),
    "penalised": lambda: plain_model(penalize_intercept=True, intercept_scaling=3.0),
    "no bias": lambda: plain_model(fit_intercept=False, loss="hinge", class_weight="balanced"),
    "table": table_model,
    "subset": subset_model,
    "unknown data": lambda: Model(plain_model().machine, Training(40)),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()
