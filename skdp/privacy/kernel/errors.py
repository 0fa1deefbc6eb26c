# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Refusals and warnings of the kernel; `skdp.exceptions` is their public place."""


class BudgetError(ValueError):
    """A release would exceed the privacy budget; no private data were read for it."""


class PrivacyWarning(UserWarning):
    """Base class of the library's warnings."""


class SeededNoiseWarning(PrivacyWarning):
    """A `random_state` was given: the noise can be reproduced, and so removed."""
