# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Code as users write it, for a type checker; it is never run."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import skdp
from skdp import (
    DPPCA,
    AdditiveShapesDisplay,
    AuditDisplay,
    BoundedScaler,
    DPCovariance,
    DPFeatureCenterer,
    DPFrequentFeatures,
    DPGridSearchCV,
    DPHeavyTailedMean,
    DPHingeSVM,
    DPHistogram,
    DPKernelClassifier,
    DPKernelRegressor,
    DPLogisticRegression,
    DPLpRegressor,
    DPMean,
    DPMedian,
    DPNormQuantile,
    DPQuantile,
    DPRandomizedSearchCV,
    DPRidge,
    DPSparseMeanEstimator,
    DPStandardScaler,
    DPTableVectorizer,
    FederatedDPLogisticRegression,
    Ledger,
    LedgerDisplay,
    LocalDPCovariance,
    LocalDPFrequencies,
    LocalDPLinearRegression,
    LocalDPLogisticRegression,
    LocalDPMean,
    LocalDPPCA,
    NormClipper,
    PrivacyBudget,
    PrivacyUtilityDisplay,
    PrivUnitPrivatizer,
    RandomFourierFeatures,
    ScalarPrivatizer,
    audit_privacy,
    dp_describe,
    dp_tabular_pipeline,
    privacy_card,
    privacy_spent,
    reconstruction_risk,
    to_sklearn,
    trusted_types,
)
from skdp.audit import (
    AuditResult,
    NeighbourPair,
    OneRunResult,
    TracedRelease,
    TraceResult,
    adversarial_pairs,
    audit_one_run,
    audit_outputs,
    clopper_pearson,
    trace_privacy,
)
from skdp.exceptions import (
    BudgetError,
    NoisyEstimateWarning,
    PrivacyWarning,
    SeededNoiseWarning,
    SimulationWarning,
)
from skdp.federated import (
    FederatedAveraging,
    FederatedClient,
    FederatedRound,
    GradientSteps,
    Population,
    ProximalPoint,
)
from skdp.inspection import (
    DictionaryRisk,
    FitPlan,
    LedgerPart,
    PrivacyCard,
    ReconstructionRisk,
    TableSummary,
    cosine_for_reconstruction,
    dictionary_risk,
    epsilon_for_reconstruction,
)
from skdp.io import RowStream, resumable, stream_arrays, stream_chunks, stream_parquet
from skdp.local import (
    Aggregator,
    BallRandomiser,
    LocalClient,
    best_ball_randomiser,
    best_product,
    optimal_privunit,
    optimal_privunit_cube,
    optimal_privunit_gaussian,
    paper_privunit,
    projunit,
    relative_levels,
    scalar_grid,
    shuffled_epsilon,
    smallest_projunit,
    uniform_levels,
)
from skdp.metrics import (
    DPClassificationScores,
    DPConfusionMatrix,
    DPRegressionScores,
    DPScore,
    dp_accuracy_score,
    dp_balanced_accuracy_score,
    dp_brier_score_loss,
    dp_d2_absolute_error_score,
    dp_log_loss,
    dp_mean_absolute_error,
    dp_mean_squared_error,
    dp_r2_score,
    dp_roc_auc_score,
    make_dp_scorer,
)
from skdp.model_selection import RowScorer
from skdp.papers import (
    AcceleratedOnePass,
    BiasReduced,
    FeaturePreprocessing,
    FiniteNet,
    GridWalkSteps,
    Localized,
    OnePass,
    grid_walk_steps,
)
from skdp.privacy import (
    BudgetStore,
    Charge,
    Curator,
    ExponentialMechanism,
    GaussianMechanism,
    Influence,
    KNormMechanism,
    LaplaceMechanism,
    LateNoise,
    Law,
    LocalMechanism,
    Noise,
    NotCovered,
    ObjectivePerturbation,
    Price,
    PrivacySpent,
    Record,
    Release,
    ReportedSum,
    SampledGaussianMechanism,
    Sampling,
    Search,
    SecretSubset,
    SelectionPlan,
    Sensitivity,
    SparseSensitivity,
    StabilityHistogram,
    SumOfReports,
    Winner,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    plan_selection,
    sampled_mu,
)
from skdp.solvers import (
    GD,
    SGD,
    Accelerated,
    ExactDraw,
    FrankWolfe,
    LazySGD,
    Objective,
    Output,
    Phased,
    Preconditioned,
    Solver,
)

X: npt.NDArray[np.float64] = np.ones((10, 2))
y: npt.NDArray[np.int64] = np.repeat([0, 1], 5)
version: str = skdp.__version__

# budgets, prices, ledgers
budget: PrivacyBudget = PrivacyBudget(1.0, 1e-6, path=Path("budget"))
spent: tuple[float, float] = budget.spent
place: str | None = budget.path
name: str = budget.name
people: object = budget.to_frame(by="person")
model = DPLogisticRegression(
    epsilon=1.0,
    mechanism="gradient",
    solver=SGD(batch_size=5),
    classes=["no", "yes"],
    budget=budget,
)
assert_type(model.fit(X, y), DPLogisticRegression)
assert_type(model.epsilon, float)
assert_type(model.ledger_, Ledger)
model.predict_proba(X).round()
releases: tuple[Release, ...] = model.ledger_.releases
epsilon, delta = privacy_spent(model)
total: float = epsilon + delta
pair: tuple[float, float] = model.privacy_spent_

# models of private rows
print(DPHingeSVM(adjacency="zero-out").fit(X, y).predict(X))
bent: DPKernelClassifier = DPKernelClassifier(kernel="rbf", gamma=0.1, classes=[0, 1]).fit(X, y)
print(bent.predict_proba(X), bent.n_components_, bent.kernel_)
print(DPKernelClassifier(kernel="auto", n_knots=4, bounds=(0, 1)))
curve: DPKernelRegressor = DPKernelRegressor(kernel="rbf", gamma=0.1, target_scale=1).fit(X, y)
print(curve.predict(X).mean(), curve.n_components_, DPKernelRegressor(bounds=(0, 1)))
print(DPLpRegressor(p="huber", clipping_norm="private").fit(X, y).predict(X).mean())
means: list[DPMean] = [DPMean(epsilon=1).fit(X), DPMean(mechanism="laplace", bounds=(0, 1)).fit(X)]
print(means[0].location_, means[0].score(X) + 1.0)
print(DPHeavyTailedMean(moment_bound=1.0).fit(X).error_bound_)
print(DPSparseMeanEstimator(sparsity=3).fit(X).location_)
print(DPMedian(bounds=np.array([0.0, 1.0])).fit(X).score(X))
print(DPQuantile(quantile=0.9).fit(X).location_, DPNormQuantile(tail=5).fit(X).ledger_)
clients = FederatedDPLogisticRegression(epsilon=None, local_epsilon=4.0)
print(clients.fit(X, y, groups=y).coef_, clients.predict_proba(X))
clients = FederatedDPLogisticRegression(
    local_epsilon=4.0,
    randomiser=BallRandomiser(magnitude="product"),
    local_update=GradientSteps(n_steps=5),
    solver=FederatedAveraging(batch_size=100, momentum=False),
    population=Population(1_000_000, batch_size=5000),
)
survey: LocalDPFrequencies = LocalDPFrequencies(categories=["no", "yes"], epsilon=2.0)


def carry(one_round: FederatedRound) -> None:
    """Carry the messages of a round."""
    for place, request in one_round.requests.items():
        if place > 0 and not one_round.is_complete:
            one_round.add(FederatedClient([[0.5, 0.1]], [1]).answer(request))
    print(one_round.number, one_round.n_reports)


elsewhere = FederatedDPLogisticRegression(epsilon=20.0, classes=(0, 1), max_iter=2)
elsewhere.fit_clients(carry, n_clients=20, n_features=2).predict([[0.5, 0.1]])
client: LocalClient = LocalClient.from_json(survey.client(n_features=1).to_json(), budget=None)
reports: Aggregator = Aggregator(client)
reports.add(client.report(["yes"]))
kept: bytes = reports.merge(Aggregator(client)).to_bytes()
print(survey.fit_reports(Aggregator.from_bytes(kept)).frequencies_, client.privacy_spent_)
rounds: LocalDPLogisticRegression = LocalDPLogisticRegression(classes=[0, 1], batch_size=1)
reports = Aggregator(rounds.client(n_features=2, n_samples=1))
reports.add(rounds.client(2, 1).report([0.5, 0.5], label=1, again=False))
print(rounds.partial_fit_reports(reports).coef_, PrivUnitPrivatizer().client(3).read)
pull: dict[str, Any] = ProximalPoint(0.5, n_steps=20).steps(0.25)

# how they are fitted
many: list[Solver] = [
    Accelerated(clipping_norm=0.5), GD(), LazySGD(), Objective(minimizer="newton"), Phased(),
    Output(sparsity=2), SGD(batch_size=5), ExactDraw(localize=True), FrankWolfe(l1_bound=3.0),
    BiasReduced(oracle="projection", sparsity=2), Localized(growth="halving"), OnePass(),
    AcceleratedOnePass(failure_probability=0.1), FiniteNet(intercept_scaling=1.0),
    Preconditioned(moments_share=0.1), FeaturePreprocessing(solver=SGD(), kind="center-scale"),
]  # fmt: skip
print([DPLogisticRegression(solver=solver) for solver in many], DPHingeSVM(solver="gd"))
print(DPLpRegressor(p=("quantile", 0.9), clipping_norm=("moments", 2.0, 3.0)))

# preprocessing
print(BoundedScaler(bounds=(0, 1)).fit(X).transform(X), NormClipper(norm=2.0).fit_transform(X))
waves: RandomFourierFeatures = RandomFourierFeatures([0.1, 1.0], n_components=20).fit(X)
print(waves.transform(X), waves.get_feature_names_out())
scaler: DPStandardScaler = DPStandardScaler(with_mean=False).fit(X)
print(scaler.transform(X), scaler.inverse_transform(X), scaler.ledger_)
print(DPFeatureCenterer(threshold=None).fit(X).original_coef([1.0, 2.0]))
print(DPFrequentFeatures(n_features_to_select=1).fit(X).transform(X))
print(DPHistogram(bins=[0, 1], categories=None).fit(X).counts_, dp_describe(X, 2.0).left_out_)
summary: TableSummary = dp_describe(X, bounds={"x0": (0, 1)})
print(summary.frame, DPQuantile(quantile=[0.1, 0.9]).fit(X).location_)
print(DPTableVectorizer(None, bounds={"x0": (0, 1)}, categories={"x1": ["a"]}).fit(X).columns_)
print(dp_tabular_pipeline("regressor", epsilon=2.0, table_share=0.2).fit(X, y).predict(X))

# second moments
covariance: DPCovariance = DPCovariance(bounds=(0, 1)).fit(X, groups=[0, 1])
print(covariance.error_norm(np.eye(2)), covariance.mahalanobis(X), covariance.score(X))
ridge: DPRidge = DPRidge(l2=0.5, target_scale=[1.0, 2.0]).fit(X, [[0, 1], [1, 0]])
print(ridge.conf_int(level=0.9)[0].shape, DPRidge().fit(X, y).predict(X, return_std=True)[1])
print(DPPCA(0.9, epsilon=2).fit(X).inverse_transform(X), DPPCA(1).fit_transform(X))

# rows that report on their own
print(LocalDPMean(epsilon=8.0).fit(X).confidence_interval(0.9)[0].shape)
print(LocalDPFrequencies(2.0, categories=[1, 2]).fit(X).confidence_interval(0.9)[0])
print(LocalDPCovariance().fit(X).error_norm(np.eye(2)), LocalDPPCA(1).fit(X).transform(X))
print(LocalDPLinearRegression().fit(X, y).predict(X), LocalDPLogisticRegression().fit(X, y).coef_)
print(PrivUnitPrivatizer(mechanism="cube").fit_transform(X))
print(ScalarPrivatizer(levels="relative").fit(X).ledger_.epsilon())
print(optimal_privunit(1.0, 10).epsilon, optimal_privunit_cube(1.0, 10).epsilon)
print(optimal_privunit_gaussian(1.0), paper_privunit(1.0, 1.0, 10), projunit(1.0, 10, 5))
print(smallest_projunit(1.0, 10), best_product(1.0, 10, 0.5), best_ball_randomiser(1.0, 10, 0.5))
print(scalar_grid(uniform_levels(4), 1.0).epsilon, relative_levels(0.1, 3).max())
print(shuffled_epsilon(1.0, 100, delta=1e-6))


# rows that do not fit into memory
rows, targets = stream_chunks(lambda: iter([(X, y)]), n_rows=10)
streamed: RowStream = stream_arrays(np.memmap("rows.bin", shape=(10, 2)), cache=True)
with resumable("fit.releases"):
    print(model.fit(rows, targets).coef_, streamed.shape, stream_parquet("rows", columns=["age"]))


# searches
def closeness(estimator: DPLpRegressor, X: Any, y: Any) -> npt.NDArray[np.float64]:
    """Return minus the distances to targets."""
    return np.asarray(-np.abs(y - estimator.predict(X)))


search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=2.0, strategy="all")
print(search.fit(X, y).best_params_, search.score(X, y) + 1.0, search.ledger_)
scorer: RowScorer = RowScorer(closeness, bounds=(-1.0, 0.0))
print(DPRandomizedSearchCV(DPLpRegressor(), {"l2": [0.1, 1.0]}, scoring=scorer).fit(X, y))

# scores of private rows
scores: DPClassificationScores = DPClassificationScores.from_estimator(
    model, X, y, epsilon=0.5, budget=budget, thresholds=[0.25, 0.75]
)
area: DPScore = scores.roc_auc
low, high = area.interval
print(low + high, scores.roc_curve()[0], scores.calibration_curve(n_bins=4)[2], scores.matrix)
table: DPConfusionMatrix = DPConfusionMatrix.from_predictions(y, y, epsilon=1.0, classes=[0, 1])
errors = DPRegressionScores.from_predictions(y, y, epsilon=1.0, bounds=(0, 1), groups=y)
assert_type(errors.r2, DPScore)
print(table.accuracy, dp_accuracy_score(y, y, epsilon=1.0, delta=1e-6, adjacency="zero-out"))
print(dp_balanced_accuracy_score(y, y, epsilon=1.0, classes=[0, 1], confidence_level=0.9))
print(dp_roc_auc_score(y, X[:, 0], epsilon=1.0, classes=[0, 1], probabilities=False))
print(dp_log_loss(y, X, epsilon=1.0, classes=[0, 1]) + 1.0)
print(dp_brier_score_loss(y, X, epsilon=1.0, classes=[0, 1]))
print(dp_mean_absolute_error(y, y, epsilon=1.0, residual_bound=1.0))
print(dp_mean_squared_error(y, y, epsilon=1.0, residual_bound=1.0))
print(dp_r2_score(y, y, epsilon=1.0, bounds=(0.0, 1.0)))
print(dp_d2_absolute_error_score(y, y, epsilon=1.0, bounds=(0.0, 1.0)))
print(make_dp_scorer(dp_accuracy_score, epsilon=0.1, budget=budget)(model, X, y).privacy_spent_)

# cards, pictures, audits, risks
card: PrivacyCard = privacy_card(model, name="a model", date="2030-01-01")
saved: Path = card.save("card.json")
facts: dict[str, Any] = card.to_dict()
names: list[str] = trusted_types(budget=True)
twin = to_sklearn(model)
curves: AdditiveShapesDisplay = AdditiveShapesDisplay(["a"], [[0, 1]], [[0.0, 1.0]]).plot(n_cols=1)
bars: LedgerDisplay = LedgerDisplay.from_estimator(model, delta=1e-6)
parts: tuple[LedgerPart, ...] = bars.parts
PrivacyUtilityDisplay.from_estimator(model, X, y, epsilons=[0.5, 1.0], band="min-max").plot()
pairs: list[NeighbourPair] = adversarial_pairs(model)
audit: AuditResult = audit_privacy(model, pairs, n_runs=100, attack="linear")
trace: TraceResult = trace_privacy(model, X, -X, y=y, n_draws=0)
lines: tuple[TracedRelease, ...] = trace.releases
trace.to_json("trace.json", inputs=False)
one: OneRunResult = audit_one_run(model, (X, y), adjacency="add-remove")
print(audit_outputs(X, X).epsilon_lower, one.epsilon_lower, clopper_pearson(1, 10, 0.05))
print(AuditDisplay.from_result({"one": audit}).contradicted)
risk: ReconstructionRisk = reconstruction_risk(1.0, 10, cosine=[0.1, 0.2], mechanism="privunit")
print(cosine_for_reconstruction(1.0, 10) + epsilon_for_reconstruction(0.1, 10, cosine=0.5))
fit_plan: FitPlan = DPMean(epsilon=1.0).plan(100, 2)
words: DictionaryRisk = dictionary_risk(1.0, 100, 10, precision=0.5, recall=0.5)
steps: GridWalkSteps = grid_walk_steps(100, 10)

# for those who write estimators
mu: float = gdp_mu(1.0, 1e-6)
price: float = gdp_epsilon(mu, 1e-6) + gdp_delta(mu, 1.0)
unit = Sensitivity(l1=1.0, l2=1.0, bound=1.0, theorem="one row, one count")
law: Law = GaussianMechanism(mu)
noise: Noise = GaussianMechanism(mu).calibrate(unit, 1)
one_release: Price = law.price(noise)
late: Law = LateNoise(law, n_steps=10, n_skipped=5)
record: Record = Record(releases)
print(one_release.covers(Price(mu=mu)), late.sampling, record.adjacency, record.mu)
plan: SelectionPlan = plan_selection(1.0, 1e-6, strategy="all", n_candidates=4, gaussian=True)
print(
    BudgetStore, Charge, Curator, ExponentialMechanism, Influence, KNormMechanism, LaplaceMechanism
)
print(
    LocalMechanism,
    NotCovered,
    ObjectivePerturbation,
    PrivacySpent,
    ReportedSum,
    SampledGaussianMechanism,
    SumOfReports,
)
print(Sampling, Search, SecretSubset, SparseSensitivity, StabilityHistogram, Winner, sampled_mu)

# warnings and errors
kinds: list[type[Warning]] = [
    NoisyEstimateWarning, PrivacyWarning, SeededNoiseWarning, SimulationWarning,
]  # fmt: skip
try:
    model.fit(X, y)
except BudgetError as error:
    print(error)
