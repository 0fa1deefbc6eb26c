# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""The words of the page that `local_mean.py` writes."""

BEFORE = """\
.. _local_mean:

Local reports of vectors: errors, times, memory
===============================================

Written by one run of ``python benchmarks/local_mean.py``. The error of a
report Z of a vector u is the mean of :math:`|Z - u|^2`, and an average over n rows has the n-th
part of it. All reports are unbiased, and all but Gaussian noise are purely
:math:`\\varepsilon`-locally private; Gaussian noise has :math:`\\delta = 10^{-6}` and the exact
curve, for a sensitivity of 2.

.. image:: /_static/local_mean.png
   :alt: Three plots against the budget: errors of unit vectors, the cost of the paper's parameters,
         and products of direction and length relative to the lift.
   :width: 100%

.. contents::
   :local:
   :depth: 1

Unit vectors, by theory
-----------------------

Errors over the dimension. *Hemisphere* is the one bit of Duchi, Jordan and Wainwright (2018);
*repeated*, the mean of the best number of such reports, each with its part of the budget.
*l2-Laplace* noise has the density :math:`e^{-\\varepsilon |z| / 2}`; *Laplace* noise is that of
each entry, with sensitivity :math:`2 \\sqrt d`. *ProjUnit* keeps as few entries as one per cent
of error allows.
"""

CUBE = """\
The last line of each dimension is PrivUnit of the cube for a corner, relative to the corner's
squared length. It is exact on finite machines, and one bit an entry is sent."""

MEASURED = """\
Measured against theory
-----------------------

Ratios of measured errors and closed forms, with their standard errors, at budgets of 0.5, 2, 8,
32, 128 and 1000, with random rows: unit vectors, vectors of length 0.3 for *Lift*, *Flip* and
*Product*, uniform entries for the cube. With few dimensions and large budgets a good part of the
error comes from rare reports, so that ratios are known less well; cells with an error below 1e-6
are left out, where such reports are too rare to be seen. The closed form of *ProjUnit* with
Hadamard's matrix is an average over directions: with ten dimensions random signs are far from a
random rotation, and errors are up to 8 % lower. All its other cells are within 2 %.
"""

BALL = """\
Vectors of the ball
-------------------

Errors over that of the lift, d = 1,000, by theory. *Product* is direction and length reported
apart, with the best split of the budget and the best grid for this length; in practice the
length must be guessed from public knowledge. *Flip* turns the direction round at random.
"""

CHOICES = """\
What the parameters of the paper cost
-------------------------------------

Errors of PrivUnit with parameters as in Bhowmick et al. (2018), over the least error for the same
budget. *Condition (16)* is the larger cosine of their conditions (16a) and (16b), *exact share*
the cosine that the budget of the cap allows in truth. The deep experiments use 0.99 : 0.01 and
(16), the theory p = 1/2, the simulation 13/16 : 1/16 with 2/16 left for the length.
"""

TABLE_1 = """\
.. _reconstruction_table1:

Table 1 of the paper
--------------------

Parameters printed by Bhowmick et al. (2018) and recomputed: 0.99 of the budget for the cap by
condition (16b), the rest for the coin. Two figures are misprints: p is 0.9933 and not 1.0 for
MNIST at 500 (CIFAR at 500 has it right), and γ is 0.00527 and not 0.00526 at 50. 1/m is the
length of a report, next to the least possible one. The last column is the budget with which the
best parameters have the same error.
"""

TIMES = """\
Time and memory
---------------

PrivUnit with the best parameters, :math:`\\varepsilon = 8`, entropy of the operating system,
better of two runs. The machine has two cores, which were shared with other work: CPU time says
more than wall time.
"""

PEERS = """\
Beside public programs
----------------------

Each ran as it is, in a process of its own, on the same unit vectors and in this run of the script:

{clones}

Errors are over the least one of any PrivUnit, so that ProjUnit pays for its short messages. The
mean of :math:`\\langle Z, u \\rangle` is 1 for unbiased reports. Nothing was waited for longer than
{limit} seconds. pfl-research takes the paper's sufficient conditions; its scale is rounded to 0 at
large budgets, and its reports are zeros then. jacobian-anr-ldp takes the best parameters, with a
rejection that seldom accepts. ml-projunit takes the Gaussian version, with p on a grid of
hundredths; its ProjUnit projects onto rows that are not uniformly random, and does not divide by
the mean length of what is kept. Ours takes its random numbers from the operating system's
cryptographic generator, eight bytes an entry, two fifths of its time; the others take those of
numpy, which are faster: that shows in 100,000 dimensions.
"""
