# Authors: the skdp developers
# SPDX-License-Identifier: BSD-3-Clause
"""Records of the registry of deployments: their fields, and that they say what the card says."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPLogisticRegression,
    DPMean,
    DPQuantile,
    FederatedDPLogisticRegression,
    LocalDPMean,
    privacy_card,
)

#: fields of schemas/deployments-schema.yaml of the registry, at commit 3e9c812
FIELDS = {
    "basic": {
        "name", "data_curators", "intended_use", "data_product_type", "data_product_region",
        "description", "publication_date",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details",
    },
    "deployment_model": {
        "model_name", "model_name_details", "actors", "release_type", "release_type_details",
        "data_source_type", "data_source_type_details", "access_type", "access_type_details",
    },
    "accounting": {"post_processing", "composition"},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning", "mechanisms", "justification",
    },
    "administrative": {"sources", "notes", "registry_authors"},
}  # fmt: skip
CHOICES = {
    ("dp_variant", "variant_name"): {
        "Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom",
    },
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle", "Federated", "Varies"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "data_source_type"): {"Static", "Dynamic"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
}  # fmt: skip
X, Y = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 2)), np.arange(60) % 2
MODELS = {
    "Central": DPMean(data_norm=1.0).fit(X),
    "Local": LocalDPMean().fit(X),
    "Federated": FederatedDPLogisticRegression(classes=[0, 1]).fit(X, Y, groups=np.arange(60) // 3),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_record_has_the_fields_of_the_schema(kind):
    record = privacy_card(MODELS[kind], name="My model, 2nd!", date="2026-05-01").to_registry()
    assert set(record) == {"url_slug", "status", "tier", "deployment"}
    assert (record["url_slug"], record["status"], record["tier"]) == ("my_model_2nd", "Draft", 3)
    parts = record["deployment"]
    assert set(parts) == set(FIELDS)
    for name, fields in FIELDS.items():
        assert set(parts[name]) <= fields
    assert set(parts["basic"]) == FIELDS["basic"]
    assert parts["basic"]["publication_date"] == "2026-05-01"
    for (part, field), allowed in CHOICES.items():
        assert parts[part][field] in allowed
    assert parts["deployment_model"]["model_name"] == kind
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_record_says_what_the_card_says():
    model = DPQuantile(epsilon=0.5, bounds=(-1.0, 1.0)).fit(X)
    card = privacy_card(model, name="quantiles")
    parts = card.to_registry(
        data_curators=["a bureau"], registry_authors=["somebody"], intended_use="tables",
        data_product_region="Europe", description="Quantiles.",
        data_product_type="Summary statistics",
    )["deployment"]  # fmt: skip
    loss = parts["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": card.to_dict()["claim"]["epsilon"]}
    assert parts["dp_variant"]["variant_name"] == "Pure DP"
    assert loss["privacy_parameters_details"] == card.claim
    assert "exponential" in parts["implementation"]["mechanisms"]
    assert parts["basic"]["data_curators"] == ["a bureau"]
    assert parts["administrative"]["registry_authors"] == ["somebody"]
    assert parts["basic"]["publication_date"] == "1900-01-01"


def test_clients_are_the_unit_of_a_federated_record():
    loss = privacy_card(MODELS["Federated"]).to_registry()["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "one group"


def test_labels_that_were_read_from_the_data_are_unprotected():
    record = privacy_card(DPLogisticRegression(data_norm=1.0).fit(X, Y)).to_registry()
    assert "class labels" in record["deployment"]["dp_variant"]["unprotected_quantities"]


def test_what_claims_nothing_is_not_registered():
    model = make_pipeline(StandardScaler(), DPMean(data_norm=1.0)).fit(X)
    with pytest.raises(ValueError, match="nothing is claimed"):
        privacy_card(model).to_registry()
