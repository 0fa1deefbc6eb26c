# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reports of local randomisers: what rows say about themselves, drawn at random.

The parameters and their arithmetic are in `skdp._randomisers`.
"""

from skdp._reports._report import is_exact, message_bits, report, report_bound, report_size

__all__ = ["is_exact", "message_bits", "report", "report_bound", "report_size"]
