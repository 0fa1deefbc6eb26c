# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a private search among candidates costs, and what is left for every run of it."""

import operator
from dataclasses import dataclass
from typing import Any

from skdp.privacy._accounting import as_float, check_choice, check_delta, check_epsilon
from skdp.privacy._mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism
from skdp.privacy._pure_mechanisms import ExponentialMechanism
from skdp.privacy._repetitions import LAWS, Repetitions
from skdp.privacy._shares import shares_of_all, shares_of_repeats

STRATEGIES = ("all", *LAWS)


@dataclass(frozen=True)
class SelectionPlan:
    """How a search spends its budget; all of it is public, and fixed before data are read.

    Parameters
    ----------
    strategy : {"all", "logarithmic", "geometric", "poisson"}
        Every candidate once, or a secret number of runs of candidates drawn at random.
    n_candidates : int
        Number of candidates.
    epsilon, delta : float
        What was granted.
    gaussian, public_scores : bool
        Whether shares of runs are Gaussian-DP parameters; whether scores are computed on
        public rows and cost nothing.
    refit_share : float
        Part that is kept for fitting the winner again, on all rows.
    repetitions : Repetitions or None
        The law of the number of runs; None for "all".
    spent : tuple of (float, float)
        (epsilon, delta) as certified; never above what was granted.
    mu_run, epsilon_run, delta_run : float or None
        What one fit may cost: a Gaussian-DP parameter if `gaussian`, a pair otherwise; the
        others are None.
    mu_refit, epsilon_refit, delta_refit : float or None
        The same of the second fit of the winner; all None if there is none.
    epsilon_choice, epsilon_score : float or None
        For "all": of the choice by private scores (None for one candidate), and of the score of
        the winner. None for random numbers of runs, where every run pays for its score, and for
        public scores.
    """

    strategy: str
    n_candidates: int
    epsilon: float
    delta: float
    gaussian: bool
    public_scores: bool
    refit_share: float
    repetitions: Repetitions | None
    spent: tuple[float, float]
    mu_run: float | None = None
    epsilon_run: float | None = None
    delta_run: float | None = None
    mu_refit: float | None = None
    epsilon_refit: float | None = None
    delta_refit: float | None = None
    epsilon_choice: float | None = None
    epsilon_score: float | None = None

    @property
    def expected_runs(self) -> float:
        """Mean of the number of runs; exactly the number of candidates for "all"."""
        return self.repetitions.expected if self.repetitions else float(self.n_candidates)

    @property
    def score_mechanism(self) -> Mechanism | None:
        """What releases a score: of every run, or of the winner for "all"; None if free."""
        if self.public_scores:
            return None
        if self.epsilon_score is not None:
            return LaplaceMechanism(self.epsilon_score)
        if self.mu_run is not None:
            # room for the rounding of a price, which goes upwards
            return GaussianMechanism(self.mu_run * (1 - 1e-12))
        return LaplaceMechanism(self.epsilon_run)  # type: ignore[arg-type]

    @property
    def choice_mechanism(self) -> Mechanism | None:
        """What draws the winner for "all" with private scores; None otherwise."""
        return None if self.epsilon_choice is None else ExponentialMechanism(self.epsilon_choice)

    def describe(self) -> str:
        """Return the plan in words."""
        runs = f"{self.expected_runs:g} runs"
        if self.repetitions is not None:
            law = f"{self.strategy}, {self.expected_runs:g} expected"
            runs = f"a secret number of runs ({law})"
        scores = "public rows score them" if self.public_scores else "held-out rows score them"
        lines = [
            f"search over {self.n_candidates} candidates: {runs}; {scores}",
            f"  total       epsilon={self.spent[0]:.6g}, delta={self.spent[1]:.3g}",
            f"  one run     {_price(self.mu_run, self.epsilon_run, self.delta_run)}",
        ]
        if self.epsilon_choice is not None:
            lines += [f"  the choice  epsilon={self.epsilon_choice:.4g}, on the held-out rows"]
        if self.epsilon_score is not None:
            lines += [f"  the score   epsilon={self.epsilon_score:.4g}, on the held-out rows"]
        if self.refit_share:
            refit = _price(self.mu_refit, self.epsilon_refit, self.delta_refit)
            lines += [f"  the winner  {refit}, fitted again on all rows"]
        return "\n".join(lines)


def _price(mu: float | None, epsilon: float | None, delta: float | None) -> str:
    if mu is not None:
        return f"mu={mu:.4g}"
    return f"epsilon={epsilon:.4g}" + (f", delta={delta:.3g}" if delta else "")


def plan_selection(
    epsilon: float,
    delta: float,
    *,
    strategy: str,
    n_candidates: int,
    expected_runs: float | None = None,
    gaussian: bool,
    refit_share: float = 0.0,
    public_scores: bool = False,
) -> SelectionPlan:
    """Return the plan with the largest share for every run that a budget allows.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the whole search. At delta 0 everything in it is purely private.
    strategy : {"all", "logarithmic", "geometric", "poisson"}
        Every candidate once, or a secret number of runs of candidates drawn at random.
    n_candidates : int
        At least 1.
    expected_runs : float, default=None
        Mean of the number of runs, at least 1; None for twice the number of candidates. For
        "all" the number of candidates, or None.
    gaussian : bool
        Whether every fit has a Gaussian-DP parameter; shares are in units of that then.
    refit_share : float, default=0.0
        Part of the budget for fitting the winner again on all rows, in [0, 1).
    public_scores : bool, default=False
        Whether scores are computed on public rows. They cost nothing then.

    Returns
    -------
    plan : SelectionPlan
        A function of these arguments only.

    Raises
    ------
    ValueError
        If an argument is out of range, delta is 0 and `gaussian` is set, or the budget is
        too small to be divided.

    Examples
    --------
    >>> plan = plan_selection(1.0, 1e-5, strategy="geometric", n_candidates=10, gaussian=True)
    >>> print(plan.describe())
    search over 10 candidates: a secret number of runs (geometric, 20 expected); held-out rows...
      total       epsilon=1, delta=1e-05
      one run     mu=0.1525
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_choice("strategy", strategy, STRATEGIES)
    if isinstance(n_candidates, bool) or (n_candidates := operator.index(n_candidates)) < 1:
        raise ValueError(f"there must be at least 1 candidate; got {n_candidates!r}.")
    if not 0 <= (share := as_float(refit_share)) < 1:
        raise ValueError(f"refit_share must be a number in [0, 1); got {refit_share!r}.")
    if gaussian and delta == 0:
        raise ValueError(
            "delta must be greater than 0 for fits with Gaussian noise, which are never purely "
            "epsilon-DP; got 0."
        )
    repetitions, shares = None, dict[str, Any]()
    if strategy == "all":
        if expected_runs not in (None, n_candidates):
            raise ValueError(
                'expected_runs must be None for strategy "all", which runs each of the '
                f"{n_candidates} candidates once; got {expected_runs!r}."
            )
        shares = shares_of_all(epsilon, delta, n_candidates, gaussian, share, public_scores)
    else:
        mean = 2 * n_candidates if expected_runs is None else expected_runs
        repetitions = Repetitions(strategy, mean)
        shares = shares_of_repeats(epsilon, delta, repetitions, gaussian, share)
    return SelectionPlan(
        strategy=strategy,
        n_candidates=n_candidates,
        epsilon=epsilon,
        delta=delta,
        gaussian=bool(gaussian),
        public_scores=bool(public_scores),
        refit_share=share,
        repetitions=repetitions,
        **shares,
    )
