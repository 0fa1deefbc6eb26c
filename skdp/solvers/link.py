# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities from clipped and noisy gradients, corrected by released numbers.

There are two corrections, both arithmetic on released numbers. Clipping changes the link of a
loss; the first one inverts that. Noise makes coefficients too large for the labels; the second one
shrinks the odds as the released gradients suggest.
"""

import math

import numpy as np
from scipy.special import expit, log_softmax, logit, softmax

# The link.
#
# The gradient of row v with label y is s(y) (p - e_y) v', p being the softmax of its predictions
# and s(y) = min(1, c / (|p - e_y| |v|)). If its labels have probabilities q, the mean of that is
# zero where every q_y is in proportion to p_y / s(y). So that is the inverse link of the clipped
# loss, for a fit without penalty and noise. A typical length stands for |v|: with that of the row
# probabilities would not be ordered as scores are.

# how much of the inverse link is taken, in logarithms: noise, and few steps, are no clipping
LINK_SHARE = 0.7


def unclipped_log_proba(log_proba, longer):
    """Return log-probabilities with most of the effect of clipping on the link inverted.

    Parameters
    ----------
    log_proba : ndarray of shape (n_rows, n_classes)
        Logarithms of the softmax of the predictions.
    longer : float
        Length of a typical row in units of the clipping norm.

    Returns
    -------
    log_proba : ndarray of shape (n_rows, n_classes)
        The order of the classes of a row does not change, nor, for two classes, the order of rows:
        p / s(p)^a grows with p for a <= 1.
    """
    longer = np.maximum(_residuals(np.exp(log_proba)) * longer, 1)
    return log_softmax(log_proba + LINK_SHARE * np.log(longer), axis=1)


def _residuals(proba):
    """Return the lengths of the residuals of the labels, an array of shape (n_rows, n_classes)."""
    squares = np.einsum("ij,ij->i", proba, proba)[:, None] - 2 * proba + 1
    # two classes have one output, and their residual one entry
    return np.sqrt(np.maximum(squares, 0) / (2 if proba.shape[1] == 2 else 1))


def unclipped_odds(odds, longer):
    """Return the same for log-odds of two classes, an array of any shape."""
    against, for_ = (np.log(np.maximum(expit(side) * longer, 1)) for side in (-odds, odds))
    return odds + LINK_SHARE * (against - for_)


# Belief in odds.
#
# A step releases g = mean of s (p - y) v + noise at coefficients w that earlier releases gave: the
# noise is fresh. Let u be the part of predictions that varies with the row, normal with the
# variance that the released moments give it, and m the prediction at the center. Let labels have
# the odds f(m' + k u), f being the inverse link above. Then g . w without its constant feature has
# the mean E[u r], and the constant coordinate of g that of r, r = s (p - E y): known functions of
# m' and k. So the means of both over all steps, with noise of known deviation, have a likelihood.
# Where labels are pure noise k is 0, whatever w is; where odds are right k = 1, m' = m.
#
# But w is fitted to the noise of these labels, too. That takes off g . w the number of coefficients
# that are free to fit, over the number of rows, as it does to the loss of a fit without privacy.

# Grid of k, and the place of 1 in it. The prior: rows say nothing (k = 0), or k is normal around
# .8, since odds have noise in them and few steps leave them short
_KEPT, _RIGHT, _NOTHING = np.linspace(0.0, 2.0, 17), 8, 0.1
_KEPT_PRIOR = np.exp(-(((_KEPT - 0.8) / 0.4) ** 2) / 2)
_KEPT_PRIOR *= (1 - _NOTHING) / _KEPT_PRIOR.sum()
_KEPT_PRIOR[0] += _NOTHING
# grid of m'; with prior probability 1/2 classes are about equally frequent, with this deviation
_CENTERS, _EQUAL, _EQUALLY = np.linspace(-6.0, 6.0, 121), 0.5, 0.3
# what real rows, which are not normal, may add to E[u r], in parts of its change from k = 0 to 1;
# deviation of a share of a class, from which the center stays where it is; and how far it does so
# where odds vary with the row
_MODEL, _SURE_SHARE, _VARIED = 0.1, 0.12, 0.3
# how much of what fitting takes off g . w is added again: few steps leave odds short
_FITTED = 0.5
# how fast odds longer than those of noise are kept; 1 is the rule of James and Stein
_SURE = 1.3
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def believed(plan, coef, seen, n_rows):
    """Return coefficients of two classes, with log-odds shrunk by the released gradients.

    Parameters
    ----------
    plan : GeometryPlan
        A plan with directions, and variances of mapped rows along them.
    coef : ndarray of shape (n_coefs,)
        Average of the iterates, for mapped rows.
    seen : list of (ndarray of shape (n_coefs,), ndarray of shape (n_coefs,))
        Coefficients, and the gradient of the mean loss that was released there.
    n_rows : int
        Number of rows.

    Returns
    -------
    coef : ndarray of shape (n_coefs,)
        The coefficients of features are multiplied by a number in [0, 1], a posterior mean. The
        coefficient of the constant feature gives the center the odds of the posterior mean of a
        class's share.
    """
    d, constant, longer = len(plan.scale), plan.intercept, plan.length
    at, gradient = (np.array(part) for part in zip(*seen, strict=True))
    squares = (at[:, :d] @ plan.directions) ** 2
    size = math.sqrt(squares.sum() / len(seen))
    if size == 0:
        # a single step says nothing about itself
        return coef
    one, varied = plan.noise / math.sqrt(len(seen)), squares @ plan.variance
    u = np.sqrt(varied)[:, None] * _NODES
    predicted = constant * at[:, d:] + u if constant else u
    low, high = (np.minimum(expit(side), 1 / longer) for side in (predicted, -predicted))
    labels = expit(unclipped_odds(predicted + (_KEPT[:, None, None] - 1) * u, longer))
    along = np.mean((u * (low - labels * (low + high))) @ _WEIGHTS, axis=1)
    found = np.mean(np.sum(at[:, :d] * gradient[:, :d], axis=1))
    fitted = _fit_to_noise(plan, along[0] / np.mean(varied), n_rows)
    kept = _part_kept(found + fitted, along, one * size)
    # whatever the law of u, noise makes no more than this, one deviation above its mean; what is a
    # third longer is not noise
    noise = plan.variance * plan.deviation**2
    made = noise.sum() + math.sqrt(2 * noise @ noise)
    found = plan.variance @ (coef[:d] @ plan.directions) ** 2
    kept = min(1.0, max(kept, _SURE * (1 - made / max(found, 1e-300))))
    if not constant:
        return kept * coef
    u = kept * math.sqrt(found) * _NODES
    labels = expit(unclipped_odds(_CENTERS[:, None] + u, longer))
    along = (low.mean(axis=0) - labels * (low + high).mean(axis=0)) @ _WEIGHTS
    # no sharper than the grid
    unsure = np.hypot(one / constant, 0.6 * np.gradient(along))
    centers = unclipped_odds(_CENTERS, longer)
    shares, apart = expit(centers), np.gradient(centers)
    equal, other = (
        part * apart / (part @ apart)
        for part in (np.exp(-((centers / _EQUALLY) ** 2) / 2), np.exp(-np.abs(centers) / 2))
    )
    likely = _posterior(
        (np.mean(gradient[:, d]) / constant - along) / unsure,
        _EQUAL * equal + (1 - _EQUAL) * other,
    )
    share = likely @ shares
    error = likely @ (shares - share) ** 2
    center = constant * coef[d]
    was = float(unclipped_odds(center, longer))
    # where odds vary with the row their law matters, and it is not normal
    spread = _WEIGHTS @ (unclipped_odds(center + u, longer) - was) ** 2
    is_ = was + (logit(share) - was) / (1 + error / _SURE_SHARE**2 + _VARIED * spread)
    center += np.interp(is_, centers, _CENTERS) - np.interp(was, centers, _CENTERS)
    return np.append(kept * coef[:d], center / constant)


def _fit_to_noise(plan, bend, n_rows):
    """Return what the mean of g . w lacks since w fits the noise of labels, for one output.

    Parameters
    ----------
    plan : GeometryPlan
        As for `believed`.
    bend : float
        Mean curvature of the loss.
    n_rows : int
        Number of rows.

    Returns
    -------
    fitted : float
        A part of the number of free coefficients over that of rows. A coefficient gets free from
        step to step, with the curvature along its direction; a penalty leaves it free in part.
    """
    felt = plan.step_size * max(bend, 0.0) * plan.variance
    if plan.speed is not None:
        felt = felt * plan.speed**2
    pulled = np.maximum(felt + plan.step_size * plan.held, 1e-300)
    times = plan.n_steps / (1 - plan.momentum) * pulled
    return _FITTED * (felt / pulled) @ (1 + np.expm1(-times) / times) / n_rows


def _part_kept(found, along, noise):
    """Return the posterior mean of k, at most 1, from a noisy mean of u r, and that of each k."""
    off = (found - along) / math.hypot(noise, _MODEL * (along[0] - along[_RIGHT]))
    return min(1.0, float(_posterior(off, _KEPT_PRIOR) @ _KEPT))


# With more classes u is a vector, and not integrated for every k and m': E[u . r] is taken for a
# line through its values at k = 0 and k = 1, which follow from points with the mean and covariance
# of u. Values at two k more gained nothing. Shares of the classes follow from the constant
# coordinates, as if labels were independent of u; so the center moves to them only by the part of
# the odds that is not kept.

# times that the link is inverted: at worst each leaves .7 of the error
_INVERTED = 60
# scores that are held at once
_AT_ONCE = 1_000_000


def believed_classes(plan, coef, seen, n_rows):
    """Return coefficients of more than two classes, with scores shrunk by the released gradients.

    Parameters
    ----------
    plan : GeometryPlan
        A plan with directions, and variances of mapped rows along them.
    coef : ndarray of shape (n_classes, n_coefs)
        Average of the iterates, for mapped rows.
    seen : list of (ndarray of shape (n_classes, n_coefs), ndarray of shape (n_classes, n_coefs))
        Coefficients, and the gradient of the mean loss that was released there.
    n_rows : int
        Number of rows.

    Returns
    -------
    coef : ndarray of shape (n_classes, n_coefs)
        The coefficients of features are multiplied by a number in [0, 1], a posterior mean with the
        prior of `believed`. The center goes the rest of the way to the odds of the posterior means
        of the classes' shares.
    """
    d, constant, longer = len(plan.scale), plan.intercept, plan.length
    # what is added to all classes is noise, and changes nothing
    both = map(np.array, zip(*seen, strict=True))
    at, gradient = (part - part.mean(axis=1, keepdims=True) for part in both)
    body = at[..., :d]
    size = np.linalg.norm(body) / math.sqrt(len(seen))
    if size == 0:
        return coef
    # orthogonal, and each point has a part of all directions: a cosine transform
    wave = math.sqrt(2) * np.cos(math.pi / d * np.outer(np.arange(d), np.arange(d) + 0.5))
    wave[0] = 1.0
    points = (np.concatenate([wave, -wave]) * np.sqrt(plan.variance)) @ plan.directions.T
    centers = constant * at[..., d:].sum(axis=2)[:, None]
    along, felt, n_points = np.zeros(2), 0.0, len(points) * len(seen)
    n_parts = math.ceil(n_points * len(coef) / _AT_ONCE)
    for steps in np.array_split(np.arange(len(seen)), min(n_parts, len(seen))):
        u = points @ body[steps].swapaxes(1, 2)
        center = np.broadcast_to(centers[steps], u.shape).reshape(-1, len(coef))
        u = u.reshape(center.shape)
        proba = softmax(center + u, axis=1)
        weight = 1 / np.maximum(_residuals(proba) * longer, 1)
        for i, times in enumerate((0, 1)):
            labels = unclipped_log_proba(log_softmax(center + times * u, axis=1), longer)
            cut = np.exp(labels) * weight
            along[i] += np.sum(u * (proba * cut.sum(axis=1, keepdims=True) - cut)) / n_points
        felt = felt + (proba.T @ weight - np.diag(weight.sum(axis=0))) / n_points
    one = plan.noise / math.sqrt(len(seen))
    found = np.sum(body * gradient[..., :d]) / len(seen)
    varied = np.sum((body @ plan.directions) ** 2 @ plan.variance) / len(seen)
    fitted = (len(coef) - 1) * _fit_to_noise(plan, along[0] / varied, n_rows)
    kept = _part_kept(found + fitted, along[0] + (along[1] - along[0]) * _KEPT, one * size)
    if not constant:
        return kept * coef
    # the mean residual is felt @ shares, and the shares add up to 1
    shares = np.linalg.solve(felt - 1, gradient[..., d].mean(axis=0) / constant - 1)
    noise = one / constant * (1 - len(coef)) / np.trace(felt)
    wanted = np.log(believed_shares(shares, noise))
    was = constant * (coef[:, d] - coef[:, d].mean())
    center = was
    for _ in range(_INVERTED):
        center = center + wanted - unclipped_log_proba(log_softmax(center)[None], longer)[0]
    center = was + (1 - kept) * (center - center.mean() - was)
    return np.column_stack([kept * coef[:, :d], center / constant])


# Shares of classes from counts, or from the gradients of more than two classes. Prior probability
# that classes are about equally frequent: where they are, a noisy intercept costs decisions
_EQUAL_COUNTED = 0.85


def believed_shares(found, noise):
    """Return posterior means of the shares of classes, which are positive and add up to 1.

    Parameters
    ----------
    found : ndarray of shape (n_classes,)
        Released shares, with noise.
    noise : float
        Standard deviation of the noise of each.

    Returns
    -------
    shares : ndarray of shape (n_classes,)
        All classes are about equally frequent, or odds of each are as for `believed`. Shares are
        taken for independent but for this, and for their sum.
    """
    n_classes = len(found)
    shares = expit(_CENTERS - math.log(n_classes - 1))
    # the sum is known, and takes its part of the noise
    found = found + (1 - found.sum()) / n_classes
    squares = (found[:, None] - shares) ** 2 / (noise**2 * (1 - 1 / n_classes))
    likely = np.exp((squares.min(axis=1, keepdims=True) - squares) / 2)
    equal, other = np.exp(-((_CENTERS / _EQUALLY) ** 2) / 2), np.exp(-np.abs(_CENTERS) / 2)
    priors = np.array([equal / equal.sum(), other / other.sum()])
    evidence = likely @ priors.T
    # two classes have one share
    bits = np.log(evidence[: n_classes if n_classes > 2 else 1])
    is_equal = expit(logit(_EQUAL_COUNTED) + np.sum(bits[:, 0] - bits[:, 1]))
    means = (likely * shares) @ priors.T / evidence @ [is_equal, 1 - is_equal]
    return means / means.sum()


def _posterior(off, prior):
    """Return the probabilities of grid points at the given numbers of standard deviations."""
    squares = off**2
    likely = np.exp((squares.min() - squares) / 2) * prior
    return likely / likely.sum()
