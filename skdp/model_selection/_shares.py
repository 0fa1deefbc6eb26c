# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How the share of one fit is divided among the private steps of a candidate."""

import math
from dataclasses import dataclass, replace

from skdp.model_selection._leaves import private_leaves
from skdp.model_selection._run_budget import Charge, total_of
from skdp.privacy import gdp_epsilon, gdp_mu
from skdp.privacy._accounting import pure_epsilon

# rounds in which shares are made to fit
_ROUNDS = 20
# kept between a total and a share that had to be made smaller
_MARGIN = 1e-9


@dataclass(frozen=True)
class Share:
    """What the private steps of a candidate are given in one fit.

    Parameters
    ----------
    settings : tuple of dict
        epsilon and, where it is a parameter, delta; for every private step in order.
    limits : tuple of Charge
        What each of them may charge then.
    """

    settings: tuple[dict, ...]
    limits: tuple[Charge, ...]


def share_out(candidate, form, n_rows, *, epsilon, delta, mu, whole):
    """Divide the share of one fit among the private steps of a candidate.

    Parameters
    ----------
    candidate : Candidate
        With the charges that give the ratios.
    form, n_rows : Form, int
        Of the rows that the fit will read.
    epsilon, delta, mu : float or None
        The share: a Gaussian-DP parameter, or, if that is None, a price.
    whole : tuple of (float, float)
        (epsilon, delta) of the search.

    Returns
    -------
    share : Share
        Whose limits add up to no more than the share of the fit.

    Raises
    ------
    ValueError
        If the steps cannot be fitted with so little.
    """
    divide = _gaussian_aims if mu is not None else _priced_aims
    aims = divide(candidate.charges, epsilon, delta, mu)
    leaves = private_leaves(candidate.estimator)
    for _ in range(_ROUNDS):
        settings = [
            _settings(leaf, charge, aim, mu, whole)
            for leaf, charge, aim in zip(leaves, candidate.charges, aims, strict=True)
        ]
        charges = candidate.null_charges(form, n_rows, settings)
        spent = total_of(charges)
        if mu is not None and spent[2] is not None and spent[2] <= mu:
            return Share(tuple(settings), charges)
        if mu is None and spent[0] <= epsilon and spent[1] <= delta:
            limits = tuple(replace(charge, mu=None) for charge in charges)
            return Share(tuple(settings), limits)
        aims = _smaller(aims, charges, mu)
    raise ValueError(
        f"the steps of the candidate {candidate.params!r} charge more than the share that they "
        "are given; raise epsilon or delta, or search less."
    )


def _gaussian_aims(charges, epsilon, delta, mu):
    length = math.hypot(*(charge.mu for charge in charges))
    return [mu * (charge.mu / length) for charge in charges]


def _priced_aims(charges, epsilon, delta, mu):
    epsilons = math.fsum(charge.epsilon for charge in charges)
    deltas = math.fsum(charge.delta for charge in charges)
    return [
        (
            epsilon * (charge.epsilon / epsilons),
            delta * (charge.delta / deltas) if charge.delta else 0.0,
        )
        for charge in charges
    ]


def _smaller(aims, charges, mu):
    """Return aims that are missed by less, or not at all."""
    if mu is None:
        return [(e * (1 - 1e-12), d * (1 - 1e-12)) for e, d in aims]
    return [
        aim * min(1.0, aim / charge.mu) * (1 - _MARGIN) if charge.mu is not None else aim / 2
        for aim, charge in zip(aims, charges, strict=True)
    ]


def _settings(leaf, charge, aim, mu, whole):
    """Return epsilon and delta of a step, for an aim at what it charges."""
    has_delta = "delta" in leaf.get_params(deep=False)
    if mu is None:
        epsilon, delta = aim
        return {"epsilon": epsilon, "delta": delta} if has_delta else {"epsilon": epsilon}
    if not (charge.delta and has_delta):
        return {"epsilon": pure_epsilon(aim)}
    # less of delta for less of mu, so that something is left of epsilon
    delta = whole[1] * min(1.0, aim / gdp_mu(*whole))
    return {"epsilon": gdp_epsilon(aim, delta), "delta": delta}
