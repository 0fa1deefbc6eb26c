# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a linear classifier can be released: one file per mechanism.

Each file has a `plan` that looks at a `Problem`, public through and through, and
returns a frozen plan with

* ``delta``, the delta that may be spent (0 for pure privacy),
* ``n_iter``, a public number, and
* ``run(curator)``, which releases the coefficients, of shape ``problem.shape``.

A plan that cannot be made is a ValueError before any row was read.
"""

from skdp.linear_model._mechanisms.choice import SOLVERS, choose, make_plan

__all__ = ["SOLVERS", "choose", "make_plan"]
