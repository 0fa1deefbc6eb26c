# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Seeded fits of every configuration of the conformance grid, as hashes of their attributes.

A change of structure leaves all hashes as they are. A change that must alter one says which
and why, and writes the file anew with ``python -m tests.test_golden``. Words are not hashed:
of a ledger only the numbers count. Floats are rounded to 30 bits, so that another processor
or another BLAS gives the same hashes. Ledgers and totals are rounded to 22: another version of
numpy's Fourier transform bounds the price of random batches a billionth looser, and noise follows.
"""

import hashlib
import json
import warnings
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor

from skdp import DPHingeSVM
from tests.test_common import ALL

FILE = Path(__file__).with_name("golden.json")
SEED = 3
#: attributes that hold other estimators or tables of them; their parts are hashed on their own
NOT_HASHED = {"best_estimator_", "cv_results_", "scorer_"}


def keyed(estimators):
    """Yield a short name, made of the class and a position, with every configuration."""
    seen = {}
    for estimator in estimators:
        name = type(estimator).__name__
        seen[name] = seen.get(name, 0) + 1
        yield f"{name} {seen[name]}", estimator


#: configurations that the checks of the grid, whose data have more features, cannot take
FEW_COEFFICIENTS = {
    "DPHingeSVM exact": DPHingeSVM(epsilon=40.0, solver="exact", coef_bound=10.0, data_norm=1.0),
}
CONFIGURATIONS = {**dict(keyed(ALL)), **FEW_COEFFICIENTS}


def numbers_of(release):
    """Return what a line of a ledger says in numbers."""
    noise = release.noise
    sampling = noise.sampling and (noise.sampling.kind, noise.sampling.batch_size)
    return (
        release.size, release.adjacency, release.stated_sensitivity, release.count, release.rows,
        release.unit, noise.law, noise.scale, noise.grid, noise.sensitivity, noise.mu,
        noise.epsilon, noise.delta, noise.threshold, sampling,
    )  # fmt: skip


def rounded(values, bits):
    """Return floats with mantissas of so many bits."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


def add(value, digest, bits=30):
    """Add a fitted attribute to a hash, whatever it is."""
    if sparse.issparse(value):
        value = value.toarray()
    if hasattr(value, "releases"):
        value, bits = [numbers_of(release) for release in value.releases], 22
    if is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        digest.update(
            str(value.shape).encode() + np.ascontiguousarray(rounded(value, bits)).tobytes()
        )
    elif isinstance(value, float | np.floating):
        digest.update(rounded(value, bits).tobytes())
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            digest.update(str(key).encode())
            add(value[key], digest, bits)
    elif isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim):
        for one in value:
            add(one, digest, bits)
    else:
        digest.update(str(value).encode())


def fitted_hash(estimator):
    """Return the hash of what a seeded copy of an estimator fits to on made-up rows."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 4))
    labels = (X[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(int)
    targets = X[:, 0] * 0.5 + 0.1 * rng.normal(size=120)
    model = clone(estimator)
    names = model.get_params(deep=True)
    model.set_params(**{n: SEED for n in names if n.split("__")[-1] == "random_state"})
    model.set_params(**({"verbose": 0} if "verbose" in names else {}))
    digest = hashlib.sha256()
    supervised = is_classifier(model) or is_regressor(model)
    y = labels if is_classifier(model) else targets if supervised else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(model, "fit_transform") and not supervised:
            add(np.asarray(model.fit_transform(X)), digest)
        else:
            model.fit(X, y)
    for name in sorted(vars(model)):
        if name.endswith("_") and not name.startswith("_") and name not in NOT_HASHED:
            digest.update(name.encode())
            add(getattr(model, name), digest, 22 if name == "privacy_spent_" else 30)
    return digest.hexdigest()[:16]


@pytest.mark.sample(6, 1000)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_what_is_fitted_has_not_changed(name):
    assert fitted_hash(CONFIGURATIONS[name]) == json.loads(FILE.read_text())[name]


def test_no_configuration_was_forgotten():
    assert list(json.loads(FILE.read_text())) == list(CONFIGURATIONS)


def test_a_hash_sees_a_change_of_one_part_in_a_million():
    parts = []
    for factor in (1.0, 1 + 1e-6, 1 + 1e-12):
        digest = hashlib.sha256()
        add({"coef_": np.array([0.1, 0.7]) * factor, "n_iter_": 3}, digest)
        parts.append(digest.hexdigest())
    assert parts[0] != parts[1]
    assert parts[0] == parts[2]


if __name__ == "__main__":
    hashes = {name: fitted_hash(estimator) for name, estimator in CONFIGURATIONS.items()}
    FILE.write_text(json.dumps(hashes, indent=0) + "\n")
    print(f"{len(hashes)} hashes written to {FILE}")
