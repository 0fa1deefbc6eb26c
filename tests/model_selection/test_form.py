# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The public form of a data set: no value of it gets into null rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from skdp.model_selection._search import as_table, as_targets, public_form

RNG = np.random.default_rng(0)


def frame(seed):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.normal(size=(6, 2)), columns=["a", "b"])
    made["n"] = pd.array(rng.integers(0, 9, 6), dtype="Int64")
    made["t"] = [f"text {value}" for value in rng.integers(0, 99, 6)]
    made["c"] = pd.Categorical(rng.choice(["u", "v"], 6), categories=["u", "v"])
    made["f"] = rng.uniform(size=6) > 0.5
    return made


MAKERS = {
    "array": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)),
    "float32": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)).astype("f"),
    "object": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)).astype(object),
    "list": lambda seed: np.random.default_rng(seed).normal(size=(6, 3)).tolist(),
    "text": lambda seed: np.random.default_rng(seed).integers(0, 9, size=(6, 3)).astype(str),
    "csr": lambda seed: sparse.random_array((6, 3), density=0.2 + 0.5 * seed, format="csr"),
    "csc": lambda seed: sparse.random_array((6, 3), density=0.2 + 0.5 * seed, format="csc"),
    "frame": frame,
}


def plain(X):
    return X.toarray().tolist() if sparse.issparse(X) else np.asarray(X).tolist()


@pytest.mark.parametrize("kind", MAKERS)
def test_null_rows_follow_from_the_form_alone(kind):
    made = []
    for seed in (0, 1):
        X, y = as_table(MAKERS[kind](seed)), as_targets(RNG.integers(0, 2, 6))
        form = public_form(X, y)
        null = form.null_rows(4)
        assert null.shape == (4, X.shape[1])
        assert type(null) is type(X)
        made.append((plain(null), list(getattr(null, "columns", [])), form.shape))
        assert form.null_targets(4, np.array(["p", "q"])).tolist() == ["p", "q", "p", "q"]
        assert form.null_targets(4, None).tolist() == [0.0] * 4
    assert made[0] == made[1]
    if kind == "frame":
        assert null.dtypes.equals(X.dtypes)
        assert null.iloc[0].tolist() == [0.0, 0.0, 0, "", "u", False]


def test_targets():
    assert as_targets(None) is None
    with pytest.warns(DataConversionWarning):
        assert as_targets([[1], [2]]).shape == (2,)
    X = np.zeros((2, 1))
    assert public_form(X, None).null_targets(2, None) is None
    assert public_form(X, np.zeros((2, 3))).null_targets(5, None).shape == (5, 3)
