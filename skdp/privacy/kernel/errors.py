# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Refusals and warnings of the kernel; `skdp.exceptions` is their public place."""

import sys

PUBLIC = "skdp.exceptions"  # what users import and see in a traceback


class BudgetError(ValueError):
    """A release would exceed the privacy budget; no private data were read for it."""

    __module__ = PUBLIC


class PrivacyWarning(UserWarning):
    """Base class of the library's warnings."""

    __module__ = PUBLIC


class SeededNoiseWarning(PrivacyWarning):
    """A `random_state` was given: the noise can be reproduced, and so removed."""

    __module__ = PUBLIC


def level_of_caller() -> int:
    """Return the stack level of the first line outside of the library and of its callers."""
    level, frame = 1, sys._getframe(1)
    between = {"skdp", "sklearn", "contextlib", "joblib"}
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in between:
        level, frame = level + 1, frame.f_back
    return level
