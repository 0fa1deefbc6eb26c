# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is public about logistic regression from local reports."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._losses import LogisticLoss, SoftmaxLoss
from skdp._randomisers import lift
from skdp._solvers import LocalSgdPlan, plan_local_sgd
from skdp.local._choice import ball_randomiser

#: constant feature for the intercept, in units of the longest row: one report cannot be
#: repeated, so the intercept must be learned as fast as the coefficients are
LOCAL_INTERCEPT = 0.4
#: equal steps are the best for predictions, but their average keeps a bias as large as its noise
COVARIANCE_DECAY = 0.55


@dataclass(frozen=True)
class LogisticReportsPlan:
    """What will be reported, by how many rows, and what is done with it.

    Parameters
    ----------
    loss : LogisticLoss or SoftmaxLoss
        Pointwise loss.
    shape : tuple of int
        Shape of the coefficients.
    randomiser, longest : Lift, Flip or Product, and float
        Of gradients, and the norm that is 1 for it.
    sgd : LocalSgdPlan
        Batches and steps.
    n_gradients : int
        Rows that report a gradient; the rest reports a root of curvature.
    curvature, longest_root : Lift or None, and float
        Randomiser of roots of curvature, and the norm that is 1 for it.
    """

    loss: Any
    shape: tuple
    randomiser: Any
    longest: float
    sgd: LocalSgdPlan
    n_gradients: int
    curvature: Any
    longest_root: float


def plan_logistic_reports(
    n_rows,
    n_features,
    n_classes,
    *,
    epsilon,
    intercept,
    magnitude,
    expected_norm,
    magnitude_epsilon,
    parameters,
    covariance_share,
    batch_size,
    step_size,
    decay,
    penalty,
    average,
):
    """Choose everything from public numbers.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
        Shape of the data.
    epsilon : float
        Budget of one report.
    intercept : float
        Constant feature of every row, which is in the unit ball without it; 0 for none.
    penalty : float
        Strength of the penalty next to the SUM of losses.
    magnitude, expected_norm, magnitude_epsilon, parameters : str, float, float, str
        As for `ball_randomiser`; None expects the norm that gradients have at the start.
    covariance_share, batch_size, step_size, decay, average : float, int, float, float, bool
        Parameters of the estimator.

    Returns
    -------
    plan : LogisticReportsPlan
        The plan.

    Raises
    ------
    ValueError
        If parameters do not go together, or there are too few rows for them.
    """
    loss = LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
    if covariance_share and n_classes > 2:
        raise ValueError(
            "covariance_share must be 0 for more than 2 classes: one softmax has many "
            f"coefficients, and their Hessian is singular; got {covariance_share!r} with "
            f"{n_classes} classes."
        )
    n_curved = math.floor(covariance_share * n_rows)
    if covariance_share and not 0 < n_curved < n_rows:
        raise ValueError(
            f"covariance_share={covariance_share!r} of n_samples={n_rows} leaves no row to report "
            "a curvature; set covariance_share=0.0, or take more rows."
        )
    n_gradients = n_rows - n_curved
    if batch_size is not None and batch_size > n_gradients:
        raise ValueError(
            f"batch_size must be at most {n_gradients}, the number of rows that report a gradient "
            f"(n_samples={n_rows}); got {batch_size!r}."
        )
    n_coefs, row_norm = n_features + bool(intercept), math.hypot(1.0, intercept)
    shape = (n_coefs,) if loss.n_outputs == 1 else (loss.n_outputs, n_coefs)
    if expected_norm is None:
        expected_norm = _first_residual(n_classes) / loss.lipschitz
    randomiser = ball_randomiser(
        epsilon, math.prod(shape), magnitude, expected_norm, magnitude_epsilon, parameters
    )
    longest = loss.lipschitz * row_norm
    sgd = plan_local_sgd(
        n_rows=n_gradients,
        longest=longest,
        error=randomiser.mean_squared_error(expected_norm),
        smoothness=loss.smoothness * row_norm**2,
        batch_size=batch_size,
        step_size=step_size,
        decay=COVARIANCE_DECAY if decay is None and n_curved else decay,
        penalty=penalty / n_rows,
        average=average,
    )
    return LogisticReportsPlan(
        loss=loss,
        shape=shape,
        randomiser=randomiser,
        longest=longest,
        sgd=sgd,
        n_gradients=n_gradients,
        curvature=lift(epsilon, n_coefs) if n_curved else None,
        longest_root=math.sqrt(loss.smoothness) * row_norm,
    )


def coef_covariance(hessian, level, second_moment, plan):
    """Return the covariance of averaged iterates, in the units of the plan.

    Parameters
    ----------
    hessian, level : ndarray of shape (size, size), float
        Of the mean loss, without the penalty, and what its noise stays below.
    second_moment : ndarray of shape (size, size)
        Of the reported gradients near the end.
    plan : LogisticReportsPlan
        The plan.

    Returns
    -------
    covariance : ndarray of shape (size, size)
        ``H^-1 S H^-1 / n``, symmetric; infinite if the noise hides an eigenvalue of H.
    """
    n_coefs = len(hessian)
    if np.linalg.eigvalsh(hessian)[0] <= level:
        return np.full((n_coefs, n_coefs), math.inf)
    hessian = hessian + plan.sgd.penalty * np.eye(n_coefs)
    half = np.linalg.solve(hessian, second_moment)
    covariance = np.linalg.solve(hessian, half.T) / plan.n_gradients
    return (covariance + covariance.T) / 2.0


def _first_residual(n_classes):
    """Return the norm of a residual where all classes are equally likely."""
    return 0.5 if n_classes == 2 else math.sqrt(1.0 - 1.0 / n_classes)
