# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of private rows, each stating its own sensitivity and why it holds.

A query is a frozen dataclass: its fields are public, the private rows are an
argument. A query that is a sum over rows states its ``partial`` over a chunk.
"""

from skdp._queries._candidate_loss import CandidateChoice
from skdp._queries._centred_rows import centred_rows
from skdp._queries._client_rows import ClientRows
from skdp._queries._client_updates import ClientUpdates
from skdp._queries._clipped_row_sum import ClippedRowSum
from skdp._queries._direction_sum import DirectionSum
from skdp._queries._distance import DistanceSum
from skdp._queries._far_count import FarCount
from skdp._queries._feature_rows import FeatureRows
from skdp._queries._gradient import ClippedGradient
from skdp._queries._gradient_vectors import CurvatureVectors, GradientVectors
from skdp._queries._held_out import HeldOutChoice, HeldOutRows, HeldOutScore
from skdp._queries._joint_vectors import BoxVectors, JointVectors
from skdp._queries._l1_shift import l1_shift
from skdp._queries._linear_rows import LinearRows, ball_rows
from skdp._queries._local_reports import LocalReports, RowVectors
from skdp._queries._loss_draw import LossDraw
from skdp._queries._magnitude_threshold import (
    GradientNorm,
    MagnitudeThreshold,
    RowNorm,
    TargetDistance,
)
from skdp._queries._minimizer import Minimizer, PerturbedMinimizer
from skdp._queries._moments import MomentSum
from skdp._queries._norm_threshold import NormThreshold
from skdp._queries._objective_bounds import objective_bounds
from skdp._queries._one_pass import OnePassDescent
from skdp._queries._points import PointRows
from skdp._queries._presence_count import PresenceCount
from skdp._queries._quantile_rank import QuantileRank, RankRows
from skdp._queries._report_sum import ReportSum
from skdp._queries._rotated_sides import RotatedSideSum
from skdp._queries._row_sum import BoxRows, RowSum
from skdp._queries._side_sum import SideSum
from skdp._queries._sketch_sum import SketchSum
from skdp._queries._sparse_gradient import SparseGradient
from skdp._queries._sparse_row_sum import SparseRowSum, sparse_rows
from skdp._queries._steepest_coordinate import SteepestCoordinate
from skdp._queries._target_median import TargetMedian
from skdp._queries._telescoped_gradient import TelescopedGradient
from skdp._queries._top_entries import top_entries
from skdp._queries._touched_columns import TouchedColumnSum
from skdp._queries._unit_rows import regression_rows, unit_rows

__all__ = [
    "BoxRows",
    "BoxVectors",
    "CandidateChoice",
    "ClientRows",
    "ClientUpdates",
    "ClippedGradient",
    "ClippedRowSum",
    "CurvatureVectors",
    "DirectionSum",
    "DistanceSum",
    "FarCount",
    "FeatureRows",
    "GradientNorm",
    "GradientVectors",
    "HeldOutChoice",
    "HeldOutRows",
    "HeldOutScore",
    "JointVectors",
    "LinearRows",
    "LocalReports",
    "LossDraw",
    "MagnitudeThreshold",
    "Minimizer",
    "MomentSum",
    "NormThreshold",
    "OnePassDescent",
    "PerturbedMinimizer",
    "PointRows",
    "PresenceCount",
    "QuantileRank",
    "RankRows",
    "ReportSum",
    "RotatedSideSum",
    "RowNorm",
    "RowSum",
    "RowVectors",
    "SideSum",
    "SteepestCoordinate",
    "SketchSum",
    "SparseRowSum",
    "SparseGradient",
    "TargetDistance",
    "TargetMedian",
    "TelescopedGradient",
    "TouchedColumnSum",
    "ball_rows",
    "centred_rows",
    "l1_shift",
    "objective_bounds",
    "regression_rows",
    "sparse_rows",
    "top_entries",
    "unit_rows",
]
