# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every estimator next to what computes the same without privacy, for `speed.py`."""

import warnings

import numpy as np
from _speed_rows import alternately, labels, make
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import skdp
from skdp import papers

__all__ = ["estimators"]

MEAN, MEDIAN = "X.mean(axis=0)", "np.median(X, axis=0)"


def geometric_median(X, n_iter=50):
    """Return the geometric median by Weiszfeld's iteration."""
    point = X.mean(axis=0)
    for _ in range(n_iter):
        weights = 1 / np.maximum(np.linalg.norm(X - point, axis=1), 1e-12)
        point = weights @ X / weights.sum()
    return point


def _softmax_cases(X, scores):
    logistic = skdp.DPLogisticRegression
    for n_classes in (2, 5):
        y = labels(scores, n_classes)
        known = {"classes": range(n_classes), "data_norm": 1.0}
        for name, extra in {
            "": {},
            "solver='sgd'": {"mechanism": "gradient", "solver": "sgd"},
            "mechanism='objective'": {"mechanism": "objective"},
            "mechanism='output'": {"mechanism": "output"},
        }.items():
            if n_classes > 2 and extra:
                continue
            what = ", ".join(filter(None, (f"{n_classes} classes", name)))
            yield (
                f"DPLogisticRegression, {what}", lambda y=y, e=extra, k=known: logistic(
                    **k, **e).fit(X, y),
                "LogisticRegression", lambda y=y: LogisticRegression().fit(X, y),
            )  # fmt: skip


def dense_cases(X, scores):
    """Yield names and calls: ours, and the one that is not private."""
    y, values = labels(scores), np.clip(scores / 3, -1, 1)
    clients = np.arange(len(X)) // 20
    two = {"classes": (0, 1)}
    yield from _softmax_cases(X, scores)
    fitted = {
        skdp.DPHingeSVM(**{"data_norm": 1.0, **two}): ("LinearSVC", LinearSVC(), y),
        skdp.DPLpRegressor(): ("Ridge", Ridge(), values),
        skdp.DPLpRegressor(p=4): ("Ridge", Ridge(), values),
        skdp.DPLpRegressor(p="huber"): ("HuberRegressor", HuberRegressor(), values),
        skdp.DPStandardScaler(): ("StandardScaler", StandardScaler(), None),
        skdp.LocalDPLogisticRegression(**two): ("LogisticRegression", LogisticRegression(), y),
        skdp.LocalDPLinearRegression(): ("LinearRegression", LinearRegression(), values),
        skdp.LocalDPPCA(): ("PCA(2)", PCA(2), None),
    }
    for private, (name, public, target) in fitted.items():
        yield (
            str(private).replace("\n", " "),
            lambda m=private, t=target: m.fit(X, t), name, lambda m=public, t=target: m.fit(X, t),
        )  # fmt: skip
    yield (
        "FederatedDPLogisticRegression, 20 rows a client",
        lambda: skdp.FederatedDPLogisticRegression(**two).fit(X, y, groups=clients),
        "LogisticRegression", lambda: LogisticRegression().fit(X, y),
    )  # fmt: skip
    computed = {
        skdp.DPMean(data_norm=1.0): (MEAN, lambda: X.mean(axis=0)),
        skdp.DPMean(bounds=(-1, 1)): (MEAN, lambda: X.mean(axis=0)),
        skdp.DPHeavyTailedMean(): (MEAN, lambda: X.mean(axis=0)),
        skdp.DPFeatureCenterer(): (MEAN, lambda: X.mean(axis=0)),
        skdp.LocalDPMean(): (MEAN, lambda: X.mean(axis=0)),
        skdp.LocalDPCovariance(): ("X.T @ X", lambda: X.T @ X),
        skdp.DPQuantile(bounds=(-1.0, 1.0)): (MEDIAN, lambda: np.median(X, axis=0)),
        skdp.DPMedian(data_norm=1.0): ("50 Weiszfeld steps", lambda: geometric_median(X)),
        skdp.DPNormQuantile(): (
            "median of norms", lambda: np.median(np.linalg.norm(X, axis=1))),
    }  # fmt: skip
    for private, (name, public) in computed.items():
        yield str(private).replace("\n", " "), lambda m=private: m.fit(X), name, public
    yield (
        "PrivUnitPrivatizer().transform", lambda: skdp.PrivUnitPrivatizer().fit_transform(X),
        "a copy of X", X.copy,
    )  # fmt: skip


def sparse_cases(X, scores):
    """Yield names and calls for CSR rows."""
    y, values = labels(scores), np.clip(scores / 3, -1, 1)
    per_row = int(np.diff(X.indptr).max())
    gradient = {"classes": (0, 1), "mechanism": "gradient"}
    public = "LogisticRegression", lambda: LogisticRegression().fit(X, y)
    for name, parameters in {
        "": {"classes": (0, 1)},
        ", solver='sgd'": {**gradient, "solver": "sgd"},
        ", solver='lazy-sgd'": {**gradient, "solver": "lazy-sgd"},
        ", solver=papers.BiasReduced()": {
            "classes": (0, 1),
            "solver": papers.BiasReduced(sparsity=per_row),
        },
        ", mechanism='objective'": {"classes": (0, 1), "mechanism": "objective"},
    }.items():
        yield (
            f"DPLogisticRegression{name}",
            lambda p=parameters: skdp.DPLogisticRegression(data_norm=1.0, **p).fit(X, y), *public,
        )  # fmt: skip
    yield (
        "DPLpRegressor()", lambda: skdp.DPLpRegressor().fit(X, values),
        "Ridge", lambda: Ridge().fit(X, values),
    )  # fmt: skip
    yield (
        "DPSparseMeanEstimator()",
        lambda: skdp.DPSparseMeanEstimator(sparsity=per_row).fit(X), MEAN, lambda: X.mean(axis=0),
    )  # fmt: skip
    yield (
        "DPFrequentFeatures()", lambda: skdp.DPFrequentFeatures(sparsity=per_row).fit(X),
        "entries of columns", lambda: sparse.csr_array(X).count_nonzero(axis=0),
    )  # fmt: skip


def estimators(sizes, seconds=2.0):
    """Yield a cell for every estimator on rows of two sizes, dense and CSR."""
    for size, cases in zip(sizes, (dense_cases, sparse_cases), strict=True):
        for name, private, other, public in cases(*make(size)):
            with warnings.catch_warnings():
                # of scikit-learn: too few iterations
                warnings.simplefilter("ignore")
                (ours, theirs), _ = alternately(private, public, seconds=seconds)
            yield {
                "format": "dense" if size[2] is None else "CSR",
                "estimator": name, "fit": ours, "counterpart": other, "public": theirs,
            }  # fmt: skip
