# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a transformer has spent so far: one object that grows, whatever else stays as it is."""

import threading

from skdp.privacy import Ledger


class Account:
    """A ledger to which several threads may add.

    `transform` must not change the attributes of an estimator, but each of its calls spends:
    so the estimator keeps one of these from `fit` on, and what changes is inside of it.
    """

    def __init__(self):
        self.ledger, self._lock = Ledger(), threading.Lock()

    def add(self, ledger):
        """Add what was released to what has been."""
        with self._lock:
            self.ledger = self.ledger + ledger

    def __getstate__(self):
        # a lock belongs to its process
        return {"ledger": self.ledger}

    def __setstate__(self, state):
        self.ledger, self._lock = state["ledger"], threading.Lock()
