# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What linear classifiers of all kinds of privacy share: labels, penalty, probabilities."""

from skdp._classification._labels import INFERRED, resolve_classes
from skdp._classification._penalty import LARGEST_PENALTY, penalty_of
from skdp._classification._softmax import SoftmaxClassifierMixin

__all__ = [
    "INFERRED",
    "LARGEST_PENALTY",
    "SoftmaxClassifierMixin",
    "penalty_of",
    "resolve_classes",
]
