"""Compares the ServiceMonitors of a file with the model of the Prometheus operator, including the names of their fields.

Prints their number.
"""

import sys

import yaml
from cloudcoil.models.prometheus_operator import v1


def compare(given, known, path):
    if isinstance(given, dict) and isinstance(known, dict):
        if unknown := set(given) - set(known):
            sys.exit(f"{path}: unknown fields {sorted(unknown)}")
        for name, value in given.items():
            compare(value, known[name], f"{path}.{name}")
    elif isinstance(given, list) and isinstance(known, list):
        for index, value in enumerate(given):
            compare(value, known[index], f"{path}[{index}]")


with open(sys.argv[1]) as text:
    documents = [document for document in yaml.safe_load_all(text) if document]
monitors = [document for document in documents if document["kind"] == "ServiceMonitor"]
for document in monitors:
    model = v1.ServiceMonitor.model_validate(document)
    # The model drops fields that it does not have.
    compare(document, model.model_dump(mode="json", by_alias=True), "ServiceMonitor")
print(len(monitors))
