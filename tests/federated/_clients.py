# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Clients for the tests: sizes from one row to many, and neighbours that differ in one."""

import numpy as np

from skdp._losses.classification import LogisticLoss, SoftmaxLoss
from skdp._rows.base import L2Ball
from skdp.federated._averaging import ClientRows

OUTSIDE = 99


def clients(sizes, n_features=3, n_classes=2, seed=0):
    """Return rows, labels and groups of clients of given sizes, in a mixed order."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(groups), n_features))
    y = rng.integers(0, n_classes, len(groups))
    order = rng.permutation(len(groups))
    return X[order], y[order], groups[order]


def loss_of(n_classes):
    """Return the loss for a number of classes."""
    return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)


def admitted(X, y, groups, n_clients, n_classes=2, intercept=0.3, n_threads=1):
    """Return what a curator would hold; rows labelled OUTSIDE are null."""
    null = np.asarray(y) == OUTSIDE
    target = loss_of(n_classes).encode(np.where(null, 0, y))
    ball = L2Ball(1.0)
    return ClientRows(X, target, null, np.asarray(groups), n_clients, ball, intercept, n_threads)


def exchanged(data, client, adjacency, label=0):
    """Return data in which a client has one long row many times, and a neighbour of it.

    The neighbour has other rows, and another number of them, or only null rows.
    """
    X, y, groups = data
    others = groups != client
    row = np.zeros(X.shape[1])
    row[0] = 5.0
    made = []
    for copies, sign in ((40, 1.0), (3, -1.0)):
        labels = np.full(copies, OUTSIDE if sign < 0 and adjacency == "zero-out" else label)
        made.append(
            (
                np.concatenate([X[others], np.tile(sign * row, (copies, 1))]),
                np.concatenate([y[others], labels]),
                np.concatenate([groups[others], np.full(copies, client)]),
            )
        )
    return made
