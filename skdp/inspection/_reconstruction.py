# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on the reconstruction of a direction from one report under local privacy.

All arithmetic is on logarithms: probabilities underflow in high dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from skdp.local.randomisers.caps import cap_cosine, log_cap
from skdp.local.randomisers.privunit import optimal_privunit

MECHANISMS = (None, "privunit")
COSINES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class ReconstructionRisk:
    """Bounds on the success of a reconstruction of a direction, for several cosines.

    Parameters
    ----------
    epsilon, n_dims, target_dims, prior_log_ratio : float, int, int, float
        As passed to `reconstruction_risk`.
    cosine : tuple of float
        A guess is a success if its cosine with the truth is at least this.
    log_prior : tuple of float
        Logarithms of the success without a report, the baseline.
    log_paper_bound, log_product_bound, log_odds_bound : tuple of float
        Logarithms of bounds on the success of any attack on any channel: the published bound,
        e^epsilon times the prior, and the bound from odds, which is sharp.
    log_privunit : tuple of float or None
        Logarithms of the success of the best attack on PrivUnit, for a uniform prior; an upper
        bound if `target_dims` is less than `n_dims`.
    mean_cosine : float or None
        Mean cosine between the input and the best guess on PrivUnit.
    """

    epsilon: float
    n_dims: int
    target_dims: int
    prior_log_ratio: float
    cosine: tuple[float, ...]
    log_prior: tuple[float, ...]
    log_paper_bound: tuple[float, ...]
    log_product_bound: tuple[float, ...]
    log_odds_bound: tuple[float, ...]
    log_privunit: tuple[float, ...] | None = None
    mean_cosine: float | None = None

    @property
    def distance(self) -> np.ndarray:
        """Euclidean distances of unit vectors with these cosines."""
        return np.sqrt(2 - 2 * np.array(self.cosine))

    @property
    def prior(self) -> np.ndarray:
        """Success without a report, the baseline; zero below 1e-308."""
        return np.exp(self.log_prior)

    @property
    def paper_bound(self) -> np.ndarray:
        """The published bound, for comparison."""
        return np.exp(self.log_paper_bound)

    @property
    def product_bound(self) -> np.ndarray:
        """The prior times e^epsilon, at most 1, for comparison."""
        return np.exp(self.log_product_bound)

    @property
    def odds_bound(self) -> np.ndarray:
        """Bound on the success of any attack on any channel; the number to quote."""
        return np.exp(self.log_odds_bound)

    @property
    def privunit(self) -> np.ndarray | None:
        """Success of the best attack on PrivUnit with a uniform prior, or None."""
        return None if self.log_privunit is None else np.exp(self.log_privunit)

    @property
    def _columns(self) -> dict[str, Any]:
        """Return logarithms of probabilities by the names of their columns."""
        found: dict[str, Any] = {
            "prior": self.log_prior,
            "paper": self.log_paper_bound,
            "e^eps prior": self.log_product_bound,
            "odds bound": self.log_odds_bound,
        }
        return found | ({"PrivUnit": self.log_privunit} if self.log_privunit else {})

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per cosine (needs pandas)."""
        import pandas as pd

        columns = {"cosine": self.cosine, "distance": self.distance, "prior": self.prior}
        columns |= {name: getattr(self, name) for name in ("paper_bound", "product_bound")}
        columns |= {"odds_bound": self.odds_bound}
        if self.log_privunit is not None:
            columns["privunit"] = np.exp(self.log_privunit)
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw the success against the cosine.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; None makes a new figure. Needs matplotlib.

        Returns
        -------
        ax : matplotlib.axes.Axes
            Axes with a linear scale of probability: bounds matter away from 0 and 1.
        """
        return plot_risk(self, ax)

    def __str__(self) -> str:
        ratio = self.prior_log_ratio
        prior = f"prior at most e^{ratio:g} times uniform" if ratio else "uniform prior"
        prior = "any prior" if ratio == math.inf else prior
        image = f", image of {self.target_dims}" if self.target_dims < self.n_dims else ""
        shown = {"cosine": [f"{c:g}" for c in self.cosine]}
        shown |= {name: [show(p) for p in logs] for name, logs in self._columns.items()}
        lines = [f"epsilon {self.epsilon:g}, {self.n_dims} dimensions{image}, {prior}"]
        lines += table(shown)
        if self.mean_cosine is not None:
            lines.append(f"best guess on PrivUnit: mean cosine {self.mean_cosine:.3g}")
        if self.log_privunit and (ratio or image):
            bound = " and is an upper bound for an image" if image else ""
            lines.append(f"the column PrivUnit is for a uniform prior{bound}")
        return "\n".join(lines)


def reconstruction_risk(
    epsilon: float,
    n_dims: int,
    *,
    cosine: float | Sequence[float] = COSINES,
    prior_log_ratio: float = 0.0,
    mechanism: Literal["privunit"] | None = None,
    target_dims: int | None = None,
) -> ReconstructionRisk:
    """Bound the success of a reconstruction of a direction under local privacy.

    A person has a direction, a unit vector. The attacker knows its prior distribution, sees one
    report of an epsilon-locally private channel, and guesses. The guess is a success if its cosine
    with the true direction is at least `cosine`. For each cosine the result has the success of a
    guess without the report (the baseline of "reconstruction robustness"), and bounds on the
    success with the report, for every attack, channel and report.

    Parameters
    ----------
    epsilon : float
        Privacy budget of all reports on the person, in nats, from 1e-3 to 1e5.
    n_dims : int
        Dimension of the space of the input direction, from 2 to 10^7.
    cosine : float or sequence of float, default=(0.1, 0.2, ..., 0.9)
        From 0 to 1. A cosine c is the Euclidean distance sqrt(2 - 2c) of unit vectors.
    prior_log_ratio : float, default=0.0
        Prior knowledge of the attacker: the density of the prior, relative to the uniform
        distribution, is at most e to this power. 0 is a uniform prior; infinity is an attacker who
        may know everything.
    mechanism : {None, "privunit"}, default=None
        "privunit" adds the exact success of the best attack on PrivUnit with its optimal
        parameters, for a uniform prior.
    target_dims : int, default=None
        For an attack on the direction of a linear image of the input, under a matrix with this
        number of orthonormal rows. None: the input itself, of dimension `n_dims`.

    Returns
    -------
    risk : ReconstructionRisk
        Result to print, plot, or convert to a table. It has logarithms, which do not underflow.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    epsilon_for_reconstruction : The largest epsilon for a success.
    cosine_for_reconstruction : What can be ruled out at an epsilon.
    dictionary_risk : The same for words that a person used.

    Notes
    -----
    Let P be the prior probability of a success: the probability of a cap of the sphere, times e to
    `prior_log_ratio`, at most 1. A report increases the odds of any event by a factor of at most
    e^epsilon. So the success is at most e^epsilon P / (1 + (e^epsilon - 1) P), and some channel
    attains this. That is the bound to quote. For comparison there are e^epsilon P, and the
    published bound ([1]_, Proposition 1), which has an upper bound in place of P, and is stated
    for four dimensions or more (with fewer it is 1 here). Both are at least as large.

    A bound near 1 has no content, and the success of one attack is not a bound. Quote the
    baseline, the bound and the exact success together. With fewer `target_dims` than `n_dims`, the
    last one is an upper bound for PrivUnit; possibly no attack attains it.

    The bound is not a privacy guarantee of its own: it depends on the prior. The budgets of
    several reports on one person add up. A channel that is only (epsilon, delta)-private has no
    such bound, because it may reveal everything on rare occasions.

    References
    ----------
    .. [1] A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor and R. Rogers, "Protection against
       reconstruction and its applications in private federated learning", 2018.
       Definition 2.3, Lemma 2.2 and Proposition 1.

    Examples
    --------
    >>> from skdp.inspection import reconstruction_risk
    >>> print(reconstruction_risk(8.0, 200, cosine=[0.1, 0.3, 0.5], mechanism="privunit"))
    epsilon 8, 200 dimensions, uniform prior
    cosine   prior    paper    e^eps prior  odds bound  PrivUnit
    0.1      0.0789   1        1            0.996       0.91
    0.3      7.6e-06  0.0295   0.0226       0.0221      0.0022
    0.5      2.1e-14  7.8e-11  6.1e-11      6.1e-11     6.0e-12
    best guess on PrivUnit: mean cosine 0.192
    """
    epsilon, n_dims = check_public_epsilon(epsilon), check_dimension("n_dims", n_dims)
    ratio = check_ratio(prior_log_ratio)
    given = np.atleast_1d(cosine).ravel().tolist()
    if not given:
        raise ValueError("cosine must have at least one number from 0 to 1; got none.")
    cosines = tuple(check_cosine("cosine", c) for c in given)
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {MECHANISMS}; got {mechanism!r}.")
    dims = n_dims if target_dims is None else check_dimension("target_dims", target_dims, n_dims)
    caps = [log_cap(c, dims) for c in cosines]
    priors = tuple(log_prior(cap, ratio) for cap in caps)
    log_privunit, mean_cosine = None, None
    if mechanism:
        channel = optimal_privunit(epsilon, n_dims)
        log_privunit = tuple(log_privunit_success(channel, cap) for cap in caps)
        mean_cosine = float(channel.scale)
    return ReconstructionRisk(
        epsilon=epsilon,
        n_dims=n_dims,
        target_dims=dims,
        prior_log_ratio=ratio,
        cosine=cosines,
        log_prior=priors,
        log_paper_bound=tuple(log_paper_bound(epsilon + ratio, dims, c) for c in cosines),
        log_product_bound=tuple(min(0.0, epsilon + p) for p in priors),
        log_odds_bound=tuple(log_odds_bound(epsilon, p) for p in priors),
        log_privunit=log_privunit,
        mean_cosine=mean_cosine,
    )


def epsilon_for_reconstruction(
    success: float, n_dims: int, *, cosine: float, prior_log_ratio: float = 0.0
) -> float:
    """Return the largest epsilon at which no attack exceeds a probability of success.

    Parameters
    ----------
    success : float
        Probability, above 0, at most 1, and at least the success of a guess without a report.
    n_dims : int
        Dimension of the direction under attack, from 2 to 10^7.
    cosine : float
        Least cosine of a success, from 0 to 1.
    prior_log_ratio : float, default=0.0
        The density of the prior, relative to the uniform distribution, is at most e to this power.

    Returns
    -------
    epsilon : float
        Epsilon in nats; infinity if no budget makes the success larger (`success` 1, or `cosine`
        1).

    Raises
    ------
    ValueError
        If a parameter is out of range, or a guess without a report succeeds more often.

    See Also
    --------
    reconstruction_risk : The success at an epsilon.
    cosine_for_reconstruction : What can be ruled out at an epsilon.

    Notes
    -----
    The result is the difference of the log-odds of `success` and of the prior: an exact solution
    of the bound from odds. See :ref:`proof-odds`.

    Examples
    --------
    >>> from skdp.inspection import epsilon_for_reconstruction
    >>> round(epsilon_for_reconstruction(0.01, 784, cosine=0.5), 1)
    111.6
    """
    success, n_dims = check_success(success), check_dimension("n_dims", n_dims)
    cosine = check_cosine("cosine", cosine)
    log_p = log_prior(log_cap(cosine, n_dims), check_ratio(prior_log_ratio))
    if success == 1.0 or log_p == -math.inf:
        return math.inf
    epsilon = _log_odds(math.log(success)) - _log_odds(log_p)
    if epsilon < 0.0:
        raise ValueError(
            f"success must be at least {math.exp(log_p):.3g}, what a guess without a report "
            f"has with n_dims={n_dims}, cosine={cosine:g} and prior_log_ratio="
            f"{prior_log_ratio:g}; got {success:g}."
        )
    return epsilon


def cosine_for_reconstruction(
    epsilon: float, n_dims: int, *, success: float = 0.05, prior_log_ratio: float = 0.0
) -> float:
    """Return the smallest cosine that no attack reaches with more than a given probability.

    Parameters
    ----------
    epsilon : float
        Privacy budget of all reports on the person, in nats, from 1e-3 to 1e5.
    n_dims : int
        Dimension of the direction under attack, from 2 to 10^7.
    success : float, default=0.05
        The probability, above 0 and at most 1.
    prior_log_ratio : float, default=0.0
        The density of the prior, relative to the uniform distribution, is at most e to this power.

    Returns
    -------
    cosine : float
        Guesses with a larger cosine have probability at most `success`, for every channel and
        report; 1 if nothing is ruled out, and 0 if even a cosine of 0 is rarer.

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names it.

    See Also
    --------
    reconstruction_risk : The success at an epsilon.
    epsilon_for_reconstruction : The largest epsilon for a success.

    Notes
    -----
    The result is about ``sqrt(1 - exp(-2 (epsilon + prior_log_ratio) / n_dims))`` for a success of
    0.05, within 0.02 for at least a hundred dimensions and epsilon 8. So a protective budget is a
    small fraction of the dimension.

    Examples
    --------
    >>> from skdp.inspection import cosine_for_reconstruction
    >>> round(cosine_for_reconstruction(110.0, 784), 3)
    0.494
    """
    epsilon, n_dims = check_public_epsilon(epsilon), check_dimension("n_dims", n_dims)
    success, ratio = check_success(success), check_ratio(prior_log_ratio)
    if success == 1.0:
        return 0.0
    if ratio == math.inf:
        return 1.0
    log_p = _log_sigmoid(_log_odds(math.log(success)) - epsilon) - ratio
    return max(0.0, cap_cosine(log_p, n_dims))


def _log_odds(log_p):
    """Return the log-odds of a probability, from its logarithm."""
    return math.inf if log_p == 0.0 else log_p - log_complement(log_p)


def _log_sigmoid(x):
    """Return the logarithm of the probability with the given log-odds."""
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def log_paper_bound(epsilon, n_dims, cosine):
    """Return the logarithm of the published bound, at most 0."""
    if n_dims < 4 or cosine == 1.0:
        # whoever knows the vector beforehand has it
        return 0.0 if n_dims < 4 or epsilon == math.inf else -math.inf
    log_rest, bounds = math.log1p(-cosine) + math.log1p(cosine), [0.0]
    if cosine <= math.sqrt(0.5):
        bounds.append(epsilon + n_dims / 2 * log_rest)
    if cosine >= math.sqrt(2 / n_dims):
        small = math.log(2 * cosine) + 0.5 * math.log(n_dims)
        bounds.append(epsilon + (n_dims - 1) / 2 * log_rest - small)
    return min(bounds)


def log_privunit_success(channel, log_prior):
    """Return the logarithm of the largest posterior probability under PrivUnit.

    Parameters
    ----------
    channel : PrivUnit
        Density p/q on a cap of probability q around the input, (1-p)/(1-q) elsewhere.
    log_prior : float
        Logarithm of the probability of the event for a uniform input.

    Returns
    -------
    log_posterior : float
        At most 0.
    """
    log_q, p = channel.log_q, channel.p
    if log_prior <= log_q:
        return min(0.0, math.log(p) - log_q + log_prior)
    beyond = (1 - p) * (math.exp(log_prior) - math.exp(log_q)) / -math.expm1(log_q)
    return min(0.0, math.log(p + beyond))


# Checks of public numbers, and arithmetic on logarithms of probabilities.


def check_number(name, number, allowed, holds, kind=Real):
    """Return a public number, or raise a ValueError with the allowed range."""
    valid = isinstance(number, kind) and not isinstance(number, bool | np.bool_)
    if not valid or not holds(number):
        what = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} {allowed}; got {number!r}.")
    return int(number) if kind is Integral else float(number)


def check_public_epsilon(epsilon):
    """Return epsilon as a float, or raise."""
    return check_number("epsilon", epsilon, "from 1e-3 to 1e5", lambda x: 1e-3 <= x <= 1e5)


def check_dimension(name, n_dims, most=10**7):
    """Return a number of dimensions as an int, or raise."""
    return check_number(name, n_dims, f"from 2 to {most}", lambda n: 2 <= n <= most, Integral)


def check_ratio(ratio):
    """Return the log-ratio of the prior, or raise."""
    return check_number("prior_log_ratio", ratio, "from 0 to infinity", lambda x: x >= 0)


def check_cosine(name, cosine):
    """Return a cosine, or raise."""
    return check_number(name, cosine, "from 0 to 1", lambda c: 0 <= c <= 1)


def check_success(success):
    """Return a success, or raise."""
    return check_number("success", success, "above 0 and at most 1", lambda p: 0 < p <= 1)


def log_complement(log_p):
    """Return the logarithm of the complement of a probability."""
    if log_p == 0.0:
        return -math.inf
    return math.log(-math.expm1(log_p)) if log_p > -0.7 else math.log1p(-math.exp(log_p))


def log_prior(log_probability, ratio):
    """Return the log of the prior probability, at most 0; with an infinite ratio it is 0."""
    return 0.0 if ratio == math.inf else min(0.0, log_probability + ratio)


def log_odds_bound(epsilon, log_prior):
    """Return the log of the largest posterior probability: odds grow by e^epsilon at most.

    Parameters
    ----------
    epsilon, log_prior : float
        Budget of the channel, and logarithm of the prior probability of an event.

    Returns
    -------
    log_posterior : float
        At most 0.
    """
    if log_prior == -math.inf:
        return -math.inf
    grown = epsilon + log_prior
    return min(0.0, grown - float(np.logaddexp(log_complement(log_prior), grown)))


# Tables and pictures.


def show(log_p: float) -> str:
    """Return a probability as text, from its logarithm; it may be far below any float."""
    if log_p == -math.inf or log_p > math.log(0.001):
        return f"{math.exp(log_p):.3g}"
    exponent = math.floor(log_p / math.log(10))
    text = f"{math.exp(log_p - exponent * math.log(10)):.1f}"
    return f"1.0e{exponent + 1:+03d}" if text == "10.0" else f"{text}e{exponent:+03d}"


def table(columns: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table with aligned columns."""
    cells = [[head, *column] for head, column in columns.items()]
    widths = [max(7, *map(len, column)) for column in cells]
    lines = zip(*cells, strict=True)
    return [
        "  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]


STYLES = {
    "prior": {"color": "0.5", "linestyle": ":"},
    "paper_bound": {"color": "0.7", "linestyle": "--", "linewidth": 1},
    "odds_bound": {"color": "tab:red"},
    "privunit": {"color": "tab:blue"},
}
LABELS = {
    "prior": "guess without the report",
    "paper_bound": "bound in print",
    "odds_bound": "no attack on any channel does better",
    "privunit": "best attack on PrivUnit",
}


def plot_risk(risk, ax=None):
    """Draw the success against the cosine.

    Parameters
    ----------
    risk : ReconstructionRisk
        Data to draw, in order of the cosine.
    ax : matplotlib.axes.Axes, default=None
        Axes; None makes a new figure.

    Returns
    -------
    ax : matplotlib.axes.Axes
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(6.4, 3.8), layout="constrained").add_subplot()
    order = np.argsort(risk.cosine)
    few = "o" if len(order) == 1 else None
    for name, style in STYLES.items():
        values = getattr(risk, name)
        if values is None:
            continue
        label = LABELS[name]
        if name == "privunit" and risk.target_dims < risk.n_dims:
            label = "no attack on PrivUnit does better"
        ax.plot(np.array(risk.cosine)[order], values[order], label=label, marker=few, **style)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("cosine that counts as a success")
    ax.set_ylabel("success of the attacker")
    ax.set_title(rf"{risk.n_dims} dimensions, $\varepsilon = {risk.epsilon:g}$", fontsize=10)
    ax.legend(fontsize=8, frameon=False)
    return ax
