# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""diffprivlib's side of the page on second moments: runs in its environment."""

import argparse
import signal
import warnings
from pathlib import Path

import numpy as np
from _accuracy_store import Store

LABEL = "diffprivlib †, bounds of the data"

#: seconds that a fit may take: its sampler rejects
_LONGEST = 20


class _TooLongError(Exception):
    """A fit takes too long."""


def _stop(*_):
    raise _TooLongError


def main():
    """Store the share of the variance of the best components, for every file of a folder."""
    from diffprivlib.models import PCA

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("tables", type=Path)
    parser.add_argument("--epsilons", type=float, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--components", type=int)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _stop)
    store = Store(arguments.out)
    for file in sorted(arguments.tables.glob("*.npz")):
        with np.load(file) as arrays:
            X, covariance = arrays["X"], arrays["covariance"]
        best = np.linalg.eigvalsh(covariance)[::-1][: arguments.components].sum()
        bounds = X.min(axis=0), X.max(axis=0)
        norm = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
        for epsilon in arguments.epsilons:
            model = PCA(arguments.components, epsilon=epsilon, data_norm=norm, bounds=bounds)
            for seed in arguments.seeds:
                if store.get(file.stem, LABEL, epsilon, seed) is not None:
                    continue
                signal.alarm(_LONGEST)
                try:
                    V = model.fit(X).components_
                except _TooLongError:
                    store.add(file.stem, LABEL, epsilon, seed, score=None)
                    break
                finally:
                    signal.alarm(0)
                score = float(np.trace(V @ covariance @ V.T) / best)
                store.add(file.stem, LABEL, epsilon, seed, score=score)


if __name__ == "__main__":
    main()
