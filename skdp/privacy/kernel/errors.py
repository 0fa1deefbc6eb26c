# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Refusals and warnings of the kernel; `skdp.exceptions` is their public place."""

# what users import and see in a traceback
PUBLIC = "skdp.exceptions"


class BudgetError(ValueError):
    """A release would exceed the privacy budget; no private data were read for it."""

    __module__ = PUBLIC


class PrivacyWarning(UserWarning):
    """Base class of the library's warnings."""

    __module__ = PUBLIC


class SeededNoiseWarning(PrivacyWarning):
    """A `random_state` was given: the noise can be reproduced, and so removed."""

    __module__ = PUBLIC
