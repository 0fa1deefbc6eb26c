# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions and warnings."""


class BudgetError(ValueError):
    """A release would exceed the privacy budget; no private data were read for it."""


class PrivacyWarning(UserWarning):
    """Base class of the library's warnings."""


class SeededNoiseWarning(PrivacyWarning):
    """A `random_state` was given: the noise can be reproduced, and so removed."""


class NoisyEstimateWarning(PrivacyWarning):
    """What was released is mostly noise; said from released numbers alone."""


class SimulationWarning(PrivacyWarning):
    """The noise is that of a larger deployment: the budget does not hold for these data."""
