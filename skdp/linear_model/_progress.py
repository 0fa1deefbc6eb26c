# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a fit, shown to people and to callbacks: how many releases there were."""

# more than this many notes say nothing to anybody
_MOST_TICKS = 100
_LINES = 10


class Progress:
    """Notes on how far a fit has come. They hold public numbers only.

    Parameters
    ----------
    estimator : estimator
        Whose fit it is. Callbacks that were set on it get a task for every hundredth of the
        releases: neither rows nor labels nor an unfinished model, since those may be
        private. A wish to stop early is not heard: the number of steps is public.
    n_releases : int
        How many releases there will be, more or less.
    """

    def __init__(self, estimator, n_releases):
        self._estimator, self._total = estimator, max(1, n_releases)
        self._ticks, self._shown = min(self._total, _MOST_TICKS), 0
        self._context = None
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=self._ticks)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, done):
        """Take note that so many releases were made."""
        reached = min(self._ticks, done * self._ticks // self._total)
        while self._shown < reached:
            self._shown += 1
            if self._context is not None:
                task = self._context.subcontext(task_name="releases")
                task.call_on_fit_task_begin(estimator=self._estimator)
                task.call_on_fit_task_end(estimator=self._estimator)
            if self._estimator.verbose and self._shown * _LINES // self._ticks != (
                (self._shown - 1) * _LINES // self._ticks
            ):
                share = round(100 * self._shown / self._ticks)
                print(f"[{type(self._estimator).__name__}] {share} % of {self._total} releases")

    def close(self):
        """Take note that the fit is over."""
        self(self._total)
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)
