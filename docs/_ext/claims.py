# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx extension: write claims.rst, the table of what every configuration promises.

Every public private estimator is fitted in every combination of mechanism, solver and
adjacency on tiny made-up rows, and its ledger is read out. Combinations that an
estimator refuses are left out; solvers whose ledgers agree share their rows.
"""

import inspect
import itertools
import warnings
from pathlib import Path

import numpy as np

import skdp
from skdp import papers, solvers
from skdp.exceptions import PrivacyWarning
from skdp.federated import FederatedAveraging
from skdp.privacy.books.texts import rows_read, what_is_drawn, what_is_kept

#: configurations that change the query, beyond mechanism, solver and adjacency
_CLASSES = [("2 classes", {"classes": (0, 1)}), ("3 classes", {"classes": (0, 1, 2)})]
_DOMAINS = [
    ("ball", {"data_norm": 1.0}),
    ("box", {"bounds": (0.0, 1.0)}),
    # a budget with which eight rows are not too few for a private range
    ("no bounds, epsilon=500", {"epsilon": 500.0}),
]
_PRIVATE_UNITS = {"p": 4, "epsilon": 1000.0, "clipping_norm": "private"}
#: what a search takes; its own prices are those of the whole
_SEARCHED = {"estimator": skdp.DPLogisticRegression(classes=(0, 1))}
_GRID = {**_SEARCHED, "param_grid": {"C": [1.0, 10.0]}}
_SAMPLER = {**_SEARCHED, "param_distributions": {"C": [1.0, 10.0]}, "n_iter": 2}
VARIANTS = {
    "DPGridSearchCV": [
        (f"2 candidates, {name}", {**_GRID, "strategy": name}) for name in ("all", "subset")
    ],
    "DPRandomizedSearchCV": [("2 candidates, all", _SAMPLER)],
    "DPLogisticRegression": _CLASSES,
    "DPHingeSVM": _CLASSES,
    "DPKernelClassifier": [
        *(
            (f"{kernel}, {name}", {"kernel": kernel, **fixed})
            for kernel in ("additive", "rbf")
            for name, fixed in _CLASSES
        ),
        # a budget with which eight rows are enough for a choice
        ("auto, 2 classes, epsilon=50000", {"epsilon": 50_000.0, "classes": (0, 1)}),
    ],
    "DPKernelRegressor": [
        *(
            (
                f"{kernel}, n_knots=3, n_components=4",
                {"kernel": kernel, "n_knots": 3, "n_components": 4},
            )
            for kernel in ("additive", "rbf")
        ),
        ("auto, epsilon=50000", {"epsilon": 50_000.0}),
    ],
    "DPLpRegressor": [
        ("p=2", {}),
        ("p=1", {"p": 1}),
        ("p=4, private units and clip, epsilon=1000", _PRIVATE_UNITS),
    ],
    "DPHistogram": [
        ("10 bins in bounds", {"bounds": (0.0, 1.0)}),
        ("10 bins, no bounds, epsilon=500", {"epsilon": 500.0}),
    ],
    "DPMean": _DOMAINS,
    "DPHeavyTailedMean": [
        ("epsilon=20", {"epsilon": 20.0}),
        ("epsilon=20, delta=0", {"epsilon": 20.0, "delta": 0.0}),
        ("moment_bound=1", {"moment_bound": 1.0}),
        ("moment_bound=1, delta=0", {"moment_bound": 1.0, "delta": 0.0}),
    ],
    "DPMedian": _DOMAINS,
    "DPQuantile": [
        ("median", {"bounds": (0.0, 1.0)}),
        ("0.9-quantile", {"quantile": 0.9, "bounds": (0.0, 1.0)}),
        ("median, no bounds", {}),
        ("quartiles", {"quantile": (0.25, 0.5, 0.75), "bounds": (0.0, 1.0)}),
    ],
    "DPNormQuantile": [("tail=2", {"tail": 2}), ("center", {"tail": 2, "center": [0.1, 0.2, 0.3]})],
    "DPSparseMeanEstimator": [
        ("sparsity=2", {"sparsity": 2}),
        ("sparsity=2, nonnegative", {"sparsity": 2, "nonnegative": True}),
        ("sparsity=2, delta=0", {"sparsity": 2, "delta": 0.0}),
    ],
    "DPStandardScaler": [("box", {"bounds": (0.0, 1.0)}), ("no bounds", {})],
    "DPFeatureCenterer": [
        ("epsilon=20", {"epsilon": 20.0}),
        ("threshold=None", {"threshold": None}),
        ("with_mean=False, epsilon=20", {"epsilon": 20.0, "with_mean": False}),
    ],
    "DPFrequentFeatures": [
        ("sparsity=2", {"sparsity": 2}),
        ("sparsity=2, delta=0", {"sparsity": 2, "delta": 0.0}),
    ],
    "DPTableVectorizer": [
        ("numbers", {}),
        ("numbers and one column of words", {"categories": {"x0": None}}),
    ],
    "FederatedDPLogisticRegression": [
        ("2 classes", {"classes": (0, 1)}),
        ("3 classes", {"classes": (0, 1, 2), "solver": FederatedAveraging(4)}),
        ("proximal", {"classes": (0, 1), "local_update": "proximal"}),
        ("local_epsilon=8", {"classes": (0, 1), "local_epsilon": 8.0}),
        ("epsilon=None, local_epsilon=8", {"epsilon": None, "local_epsilon": 8.0}),
    ],
    "DPCovariance": _DOMAINS,
    "DPPCA": _DOMAINS,
    "DPRidge": [
        ("public scales", {"data_norm": 1.0, "target_scale": 1.0}),
        ("public scales, delta=0", {"data_norm": 1.0, "target_scale": 1.0, "delta": 0.0}),
        ("no scales, epsilon=1000", {"epsilon": 1000.0}),
    ],
    "LocalDPCovariance": [("epsilon=8", {})],
    "LocalDPFrequencies": [("epsilon=8", {})],
    "LocalDPLinearRegression": [
        ("epsilon=8", {}),
        ("no intercept, epsilon=8", {"fit_intercept": False}),
    ],
    "LocalDPMean": [("ball, epsilon=8", {}), ("box, epsilon=8", {"bounds": (0.0, 1.0)})],
    "LocalDPPCA": [("epsilon=8", {})],
    "LocalDPLogisticRegression": _CLASSES,
    "PrivUnitPrivatizer": [
        ("epsilon=8", {"epsilon": 8.0}),
        ("product, epsilon=8", {"epsilon": 8.0, "magnitude": "product"}),
        ("unit, epsilon=8", {"epsilon": 8.0, "magnitude": "unit"}),
        ("box, epsilon=8", {"epsilon": 8.0, "bounds": (0.0, 1.0)}),
    ],
    "ScalarPrivatizer": [
        ("epsilon=8", {"epsilon": 8.0}),
        ("relative levels, epsilon=8", {"epsilon": 8.0, "levels": "relative"}),
    ],
}
#: every solver of the linear models
KINDS = [
    kind
    for module in (solvers, papers)
    for name in module.__all__
    if isinstance(kind := getattr(module, name), type)
    and issubclass(kind, solvers.Solver)
    and kind is not solvers.Solver
]
#: a budget with which eight rows are not too few for the clipped means
ENOUGH = {"DPMean": ("clipped", "coinpress", "shifted-clipped")}
#: what the hinge gets where it needs a derivative
SMOOTHED = {"smoothing": 0.5}
#: where sensitivities and whole estimators are checked
TESTS = {
    "gradient": "tests/test_row_queries.py tests/test_claims_sgd.py tests/test_lazy_sgd.py "
    "tests/test_telescope.py tests/test_localized.py",
    "objective": "tests/test_claims_erm.py tests/linear_model/test_classifiers.py",
    "output": "tests/test_private_minimizers.py tests/linear_model/test_classifiers.py "
    "tests/test_localized.py",
    "exponential": "tests/linear_model/test_classifiers.py tests/sampling/test_log_concave.py "
    "tests/test_frank_wolfe.py",
    "soft-threshold": "tests/location/test_sparse_queries.py",
    "projection": "tests/location/test_sparse_queries.py",
    "histogram": "tests/location/test_sparse_queries.py",
    "compressed-sensing": "tests/location/test_compressed_sensing.py",
    "DPKernelClassifier": "tests/linear_model/test_kernel_classifier.py tests/test_row_queries.py",
    "DPKernelRegressor": "tests/linear_model/test_kernel_regressor.py tests/test_groups.py",
    "DPLpRegressor": "tests/linear_model/test_lp_regressor.py tests/test_private_minimizers.py",
    "DPHistogram": "tests/location/test_histogram.py",
    "DPMean": "tests/test_row_queries.py tests/test_claims_sgd.py tests/location/test_mean.py "
    "tests/location/test_range.py",
    "DPHeavyTailedMean": "tests/location/test_heavy_tailed_mean.py tests/location/test_mean.py",
    "DPMedian": "tests/location/test_median.py tests/location/test_range.py",
    "DPQuantile": "tests/location/test_median.py tests/location/test_range.py",
    "DPNormQuantile": "tests/location/test_norm_quantile.py",
    "DPStandardScaler": "tests/preprocessing/test_standard_scaler.py",
    "DPFeatureCenterer": "tests/location/test_norm_quantile.py",
    "DPFrequentFeatures": "tests/location/test_sparse_queries.py",
    "DPTableVectorizer": "tests/preprocessing/test_table.py "
    "tests/preprocessing/test_standard_scaler.py tests/location/test_sparse_queries.py",
    "DPGridSearchCV": "tests/privacy/test_selection.py tests/model_selection/test_search.py",
    "DPRandomizedSearchCV": "tests/privacy/test_selection.py tests/model_selection/test_search.py",
    "FederatedDPLogisticRegression": "tests/federated/test_federated.py",
    "DPCovariance": "tests/test_moments.py",
    "DPPCA": "tests/test_moments.py",
    "DPRidge": "tests/test_moments.py",
    "LocalDPCovariance": "tests/local/test_models.py",
    "LocalDPFrequencies": "tests/local/test_frequencies.py",
    "LocalDPLinearRegression": "tests/local/test_models.py",
    "LocalDPMean": "tests/local/test_models.py",
    "LocalDPPCA": "tests/local/test_models.py",
    "LocalDPLogisticRegression": "tests/local/test_models.py",
    "PrivUnitPrivatizer": "tests/local/test_privatizers.py",
    "ScalarPrivatizer": "tests/local/test_privatizers.py",
}

HEADER = """\
.. This file is generated by docs/_ext/claims.py.

.. _claims:

The table of claims
===================

Every private estimator in every mechanism, solver and adjacency. The table is read off
the ledgers of fits to 8 made-up rows of 3 features at ``epsilon=1`` and, unless another
is named, the default ``delta``, while this page is built. The unit is one row, or one client
where the adjacency says so; the number of rows or clients is public, and epsilon is in nats.
Sensitivities are those of the queries in their own units, as stated by the query: in l2 for
Gaussian and K-norm noise, in l1 for Laplace noise; the price of one report for rows that report
on their own; for a random batch the norm of one contribution (Poisson) or the distance of two
(fixed size); for a draw (law "exponential") the spread of the score's change, the scale being
the temperature. For a perturbed minimiser there are two releases: the secret linear term, whose
sensitivity is that of the gradient, and the noise on the error of what is computed. What is
paid on top for rounding and float error is on every ledger. The proofs are in :ref:`proofs`,
:ref:`proofs-erm`, :ref:`proofs-sampling`, :ref:`proofs-location`,
:ref:`proofs-preprocessing`, :ref:`proofs-sparse`, :ref:`proofs-sparse-erm`,
:ref:`proofs-heavy-tails`, :ref:`proofs-local` and :ref:`proofs_selection`.

"""

COLUMNS = (
    "Estimator", "Configuration", "Adjacency", "Query", "Rows", "Sensitivity", "Theorem",
    "Noise", "Price of one", "Numerics", "(epsilon, delta) of the fit", "Checked in",
)  # fmt: skip
NORMS = {
    "gaussian": "l2", "k-norm": "l2", "laplace": "l1", "exponential": "spread", "local": "price",
    "search": "of the runs",
}  # fmt: skip


def private_estimators():
    """Return the public estimator classes that have a budget."""
    classes = [getattr(skdp, name) for name in skdp.__all__]
    return [
        c
        for c in classes
        if inspect.isclass(c) and hasattr(c, "fit") and "epsilon" in inspect.signature(c).parameters
    ]


def options(estimator, parameter):
    """Return the values that a choice parameter may take; one empty dict if there is none."""
    constraint = estimator._parameter_constraints.get(parameter)
    if constraint is None:
        return [{}]
    return [{parameter: value} for value in sorted(constraint[0].options - {"auto"})]


def solved(kind):
    """Yield (words, solver, parameters of the estimator) of what changes a solver's query."""
    own = inspect.signature(kind).parameters
    flat = {}
    if kind.needs_coef_bound:
        flat = {"coef_bound": 20.0}
    elif kind.mechanism == "exponential":
        flat = {"max_iter": 20}
    words = ", ".join(f"{name}={value:g}" for name, value in flat.items())
    yield words, kind(), flat
    if "batch_size" in own:
        yield "batch_size=4", kind(batch_size=4), flat
    if "sampling" in own:
        for sampling in ("without-replacement", "with-replacement"):
            yield f"{sampling}, batch_size=4", kind(batch_size=4, sampling=sampling), flat
    if "localize" in own:
        yield f"{words}, C=0.01, localize", kind(localize=True), {**flat, "C": 0.01}
    if kind.mechanism in ("objective", "output") and not kind.needs_delta:
        yield "delta=0", kind(), {**flat, "delta": 0.0}


def linear_configurations(estimator, mechanism):
    """Yield (words, parameters) of every solver of a mechanism."""
    task = "regression" if estimator is skdp.DPLpRegressor else "classification"
    for kind in KINDS:
        if kind.mechanism != mechanism or task not in kind.tasks:
            continue
        for words, solver, flat in solved(kind):
            if set(flat) <= set(estimator._parameter_constraints):
                given = {**flat, "solver": solver}
                if "regression" not in kind.tasks:
                    # their proofs rest on a public bound
                    given["data_norm"] = 1.0
                if kind.needs_second_derivative and "smoothing" in estimator._parameter_constraints:
                    given.update(SMOOTHED)
                    words = ", ".join(filter(None, [words, "smoothing=0.5"]))
                yield words, given


def configurations(estimator):
    """Yield (words, parameters) of every configuration, those that are refused included."""
    name = estimator.__name__
    linear = estimator in (skdp.DPLogisticRegression, skdp.DPHingeSVM, skdp.DPLpRegressor)
    mechanisms = options(estimator, "mechanism")
    if estimator is skdp.DPLpRegressor:
        # its solver says what is released
        mechanisms = [{}, {}]
    for adjacency, (place, chosen) in itertools.product(
        options(estimator, "adjacency"), enumerate(mechanisms)
    ):
        mechanism = chosen.get("mechanism", ("gradient", "output")[place % 2])
        more = linear_configurations(estimator, mechanism) if linear else [("", {})]
        for (words, variant), (also, extra) in itertools.product(
            VARIANTS.get(name, [("", {})]), more
        ):
            given = {**variant, **extra, **chosen, **adjacency}
            if mechanism in ENOUGH.get(name, ()):
                given["epsilon"], also = 500.0, "epsilon=500"
            yield ", ".join(filter(None, [words, also])), given


def fitted_ledger(estimator, given):
    """Return the price and the ledger of a fit, or None if the configuration is refused."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(8, 3)), np.arange(8) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        try:
            model = estimator(**given).fit(X, y)
            if not model.ledger_.releases:
                # what a pipeline calls to train
                model.fit_transform(X, y)
        except ValueError:
            return None
    return model.privacy_spent_, model.ledger_


def release_cells(release, spent, tests):
    """Return the cells of a release, those before "Query" left out."""
    noise = release.noise
    price = f"mu={noise.mu:.4g}" if noise.mu else f"epsilon={noise.epsilon:.4g}"
    price += f", delta={noise.delta:.4g}" if noise.delta else ""
    price += " if all rows were read" if noise.by_chance else ""
    epsilon, delta = spent
    law = f"{noise.law}, " if noise.law in ("local", "search") else ""
    return (
        release.query,
        rows_read(release),
        "that of the runs"
        if noise.law == "search"
        else f"{release.stated_sensitivity:.6g} ({NORMS[noise.law]})",
        release.theorem,
        f"{law}{what_is_drawn(noise, 4)}{what_is_kept(noise)}, {release.count}×",
        price,
        release.numerics,
        f"({epsilon:.6g}, {delta:g})",
        ", ".join(f"``{path}``" for path in tests.split()),
    )


def rows():
    """Yield the table's rows as tuples of text, in the order of `COLUMNS`."""
    for estimator in private_estimators():
        name = estimator.__name__
        shared = {}
        for words, given in configurations(estimator):
            found = fitted_ledger(estimator, given)
            if found is None:
                continue
            spent, ledger = found
            mechanism = given.get("mechanism", getattr(given.get("solver"), "mechanism", ""))
            tests = TESTS.get(name) or TESTS[mechanism]
            cells = tuple(release_cells(release, spent, tests) for release in ledger.releases)
            key = (mechanism, words, given.get("adjacency", ledger.adjacency), cells)
            solver = given.get("solver", "")
            shared.setdefault(key, []).append(
                type(solver).__name__ if isinstance(solver, solvers.Solver) else str(solver)
            )
        for (mechanism, words, adjacency, parts), kinds in shared.items():
            solver = " or ".join(filter(None, kinds))
            configuration = ", ".join(filter(None, [mechanism, solver, words]))
            for cells in parts:
                yield (f":class:`~skdp.{name}`", configuration, adjacency, *cells)


def write_claims(app):
    """Write docs/claims.rst, only if it has changed."""
    lines = [".. list-table::", "   :header-rows: 1", "   :class: claims", ""]
    for row in itertools.chain([COLUMNS], rows()):
        for i, cell in enumerate(row):
            lines.append(f"   {'* -' if i == 0 else '  -'} {cell}")
    text = HEADER + "\n".join(lines) + "\n"
    path = Path(app.srcdir) / "claims.rst"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app):
    """Connect to Sphinx."""
    app.connect("builder-inited", write_claims, priority=1)
    return {"parallel_read_safe": True}
