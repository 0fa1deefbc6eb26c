# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What error rates of a test say about privacy, with stated confidence.

A test looks at an output and says which of two neighbouring data sets it came from. Its
false positive rate (FPR) and its false negative rate (FNR) are bounded from above by
counts, and every pair of rates rules out small values of epsilon and mu.
"""

from typing import Any

import numpy as np
from scipy import special


def clopper_pearson(count: Any, total: int, miss: float) -> tuple[Any, Any]:
    """Bound a probability from both sides, given how often its event occurred.

    Parameters
    ----------
    count : int or ndarray of int
        How often the event occurred, from 0 to `total`.
    total : int
        Number of independent trials, at least 1.
    miss : float
        Probability, in (0, 1), with which each of the two bounds may be wrong.

    Returns
    -------
    lower, upper : float or ndarray
        Each holds with probability ``1 - miss`` at least, whatever the probability is; both
        together with ``1 - 2 * miss``.

    Notes
    -----
    Tails of the binomial law are incomplete beta functions [1]_.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits
       illustrated in the case of the binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> from skdp.audit import clopper_pearson
    >>> lower, upper = clopper_pearson(0, 100, 0.05)
    >>> float(lower), round(float(upper), 4)
    (0.0, 0.0295)
    """
    count = np.asarray(count, dtype=np.float64)
    # the shapes at the ends, 0, are not allowed by the inverse and not looked at
    lower = special.betaincinv(np.maximum(count, 1), total - np.maximum(count, 1) + 1, miss)
    below = np.minimum(count, total - 1)
    upper = special.betainccinv(below + 1, total - below, miss)
    return np.where(count == 0, 0.0, lower), np.where(count == total, 1.0, upper)


def epsilon_bound(fpr, fnr, delta):
    """Return the least epsilon that allows error rates as small as these.

    Parameters
    ----------
    fpr, fnr : float or ndarray
        Upper bounds on the error rates of one test, in (0, 1].
    delta : float
        In [0, 1).

    Returns
    -------
    epsilon : float or ndarray
        At least 0.

    Notes
    -----
    (epsilon, delta)-differential privacy implies ``FPR + exp(epsilon) FNR >= 1 - delta`` and
    the same with the rates exchanged (Kairouz, Oh and Viswanath 2015, Theorem 2.1). Both
    are monotone in the rates, hence hold for bounds from above.
    """
    fpr, fnr = np.asarray(fpr), np.asarray(fnr)
    one = np.log(np.maximum(1 - delta - fpr, 1e-300)) - np.log(fnr)
    other = np.log(np.maximum(1 - delta - fnr, 1e-300)) - np.log(fpr)
    return np.maximum(np.maximum(one, other), 0.0)


def mu_bound(fpr, fnr):
    """Return the least mu for which mu-Gaussian privacy allows error rates as small as these.

    Parameters
    ----------
    fpr, fnr : float or ndarray
        Upper bounds on the error rates of one test, in (0, 1].

    Returns
    -------
    mu : float or ndarray
        At least 0.

    Notes
    -----
    The trade-off curve of N(0, 1) against N(mu, 1) is ``FNR = Phi(Phi^-1(1 - FPR) - mu)``
    (Dong, Roth and Su 2022, Definition 2.6).
    """
    return np.maximum(-special.ndtri(fpr) - special.ndtri(fnr), 0.0)


def rates_of(first, second, miss):
    """Return counts as error rates with their bounds.

    Parameters
    ----------
    first, second : ndarray of bool
        Whether the test says "second", for outputs of the first data set and of the second.
    miss : float
        Probability, in (0, 1), that one of the two upper bounds is wrong.

    Returns
    -------
    fpr, fnr : tuple of float
        The rate, its lower end and its upper end; each end fails with `miss` / 2.
    """
    found = []
    for wrong in (first, ~second):
        count, total = int(np.sum(wrong)), len(wrong)
        lower, upper = clopper_pearson(count, total, miss / 2)
        found.append((count / total, float(lower), float(upper)))
    return tuple(found)
