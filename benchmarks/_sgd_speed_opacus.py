# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The Opacus side of `sgd_speed.py`: runs in an environment with torch, without skdp."""

import time
import warnings

import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from scipy import sparse


def cells(X, y, batch, csr_steps, *, epsilon, delta, clip, lr):
    """Yield the measurements of one data set.

    Parameters
    ----------
    X, y : {ndarray, csr_array}, ndarray
        Rows and labels 0 and 1.
    batch : int
        Expected batch size.
    csr_steps : int
        Steps that are timed where every batch has to be made dense.
    epsilon, delta, clip, lr : float
        Budget of one epoch, clipping norm, step size.

    Yields
    ------
    cell : dict
        Method, seconds of an epoch, and of the search for the noise level.
    """
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    steps = round(X.shape[0] / batch)
    start = time.process_time()
    noise = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=batch / X.shape[0], steps=steps,
        accountant="prv", epsilon_tolerance=epsilon / 100,
    )  # fmt: skip
    accounting = time.process_time() - start
    for mode in ("hooks", "ghost"):
        training = Training(X, y, batch, noise, clip, lr, mode)
        loops = {"vectorised batches": training.vectorised}
        if not sparse.issparse(X):
            loops["its own loader"] = training.stock
        for name, loop in loops.items():
            training.reset()
            timed = min(csr_steps, steps) if sparse.issparse(X) else steps
            loop(1)  # warm up
            start = time.process_time()
            loop(timed)
            epoch = (time.process_time() - start) * steps / timed
            yield {
                "method": f"Opacus, {mode}, {name}", "epoch": epoch, "steps": steps,
                "accounting": accounting, "extrapolated": timed < steps,
                "accuracy": None if sparse.issparse(X) else training.accuracy(),
            }  # fmt: skip


class Training:
    """A linear model with everything that Opacus wraps around it.

    Parameters
    ----------
    X, y : {ndarray, csr_array}, ndarray
        Rows and labels.
    batch, noise, clip, lr : int, float, float, float
        Expected batch size, noise multiplier, clipping norm, step size.
    mode : {"hooks", "ghost"}
        How Opacus clips.
    """

    def __init__(self, X, y, batch, noise, clip, lr, mode):
        self.X, self.rate = X, batch / X.shape[0]
        if not sparse.issparse(X):
            self.X = torch.as_tensor(X)
        self.y = torch.as_tensor(y, dtype=torch.float32)
        linear = torch.nn.Linear(X.shape[1], 1)
        # only the dense rows go through the loader; for CSR any rows will do
        through = self.X if torch.is_tensor(self.X) else torch.zeros(len(y), 1)
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(through, self.y), batch_size=batch
        )
        criterion = torch.nn.BCEWithLogitsLoss()
        made = PrivacyEngine().make_private(
            module=linear, optimizer=torch.optim.SGD(linear.parameters(), lr=lr),
            data_loader=loader, criterion=criterion, noise_multiplier=noise, max_grad_norm=clip,
            grad_sample_mode=mode,
        )  # fmt: skip
        self.model, self.optimizer, self.loader = made[0], made[1], made[-1]
        self.criterion = made[2] if mode == "ghost" else criterion

    def reset(self):
        """Return to coefficients of zero."""
        for parameter in self.model.parameters():
            torch.nn.init.zeros_(parameter)

    def step(self, X, y):
        """Make one step with a batch."""
        self.optimizer.zero_grad()
        self.criterion(self.model(X).squeeze(1), y).backward()
        self.optimizer.step()

    def vectorised(self, steps):
        """Make steps with batches that are drawn and gathered in one go each."""
        for _ in range(steps):
            chosen = torch.nonzero(torch.rand(self.X.shape[0]) < self.rate).ravel()
            if torch.is_tensor(self.X):
                rows = self.X[chosen]
            else:
                rows = torch.as_tensor(self.X[chosen.numpy()].toarray())
            self.step(rows, self.y[chosen])

    def stock(self, steps):
        """Make steps with the data loader that Opacus provides."""
        for _, (rows, target) in zip(range(steps), self.loader, strict=False):
            self.step(rows, target)

    def accuracy(self):
        """Return the accuracy on the rows."""
        with torch.no_grad():
            return float(((self.model(self.X).squeeze(1) > 0) == (self.y > 0)).float().mean())
