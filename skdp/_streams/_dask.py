# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The few things that are asked of dask; it is imported when they are."""


def current_client():
    """Return the client of dask.distributed that dask would use now, or None."""
    from dask.base import get_scheduler

    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "persist") and hasattr(owner, "nthreads") else None


def task(function, *args):
    """Return a task; its arguments may be other tasks, and are not looked at otherwise."""
    from dask import delayed

    return delayed(function, pure=False, traverse=False)(*args)


def kept(made, client):
    """Return tasks whose results workers keep in memory, if there are any workers."""
    if client is None:
        return made
    return list(_asked(client.persist, made, client))


def compute(asked, client):
    """Return the results of tasks, in order.

    Parameters
    ----------
    asked : list of Delayed
        The tasks.
    client : Client or None
        Of the cluster; None for the scheduler of dask's choice.

    Returns
    -------
    results : tuple
        One for each.

    Raises
    ------
    ConnectionError
        If the cluster is gone. What workers compute anew after one of them was lost is not
        seen here.
    """
    import dask

    if client is None:
        return dask.compute(*asked)
    return _asked(lambda made: dask.compute(*made, scheduler=client), asked, client)


def _asked(ask, made, client):
    from concurrent.futures import CancelledError

    import dask
    from distributed.scheduler import KilledWorker

    try:
        # coefficients and positions are as long as they are: dask is not to warn of it
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
            return ask(made)
    except KilledWorker as error:
        problem, cause = "workers were lost again and again, perhaps for want of memory", error
    except Exception as error:
        if client.status == "running" and not isinstance(error, CancelledError):
            raise
        problem, cause = "the cluster is gone, or has lost rows that it cannot compute anew", error
    raise ConnectionError(
        f"{problem}. The fit was given up; a shared budget has been charged for all of it."
    ) from cause
