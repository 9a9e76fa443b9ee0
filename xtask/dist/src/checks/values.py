"""Reads the YAML and JSON files of a folder, and compares the values of the chart with their schema."""

import copy
import json
import pathlib
import sys

import jsonschema
import yaml

deploy = pathlib.Path(sys.argv[1])
files = [path for path in deploy.rglob("*.yaml") if "templates" not in path.parts]
for path in files:
    with path.open() as text:
        list(yaml.safe_load_all(text))
for path in deploy.rglob("*.json"):
    files.append(path)
    json.loads(path.read_text())

chart = deploy / "helm/portcullis"
schema = json.loads((chart / "values.schema.json").read_text())
values = yaml.safe_load((chart / "values.yaml").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for error in validator.iter_errors(values):
    sys.exit(f"values.yaml: {error.json_path}: {error.message}")


def compare(described, present, path):
    """Every value is described, and every described value is present."""
    names, known = set(present), set(described["properties"]) - {"global"}
    if names != known:
        sys.exit(f"{path}: the values and the schema differ in {sorted(names ^ known)}")
    for name, value in present.items():
        if "properties" in described["properties"][name]:
            compare(described["properties"][name], value, f"{path}.{name}")


compare(schema, values, "values")

VALID = [
    {"replicas": 3, "sessionKeys": {"existingSecret": "keys", "items": ["first"]}},
    {"state": {"type": "persistentVolumeClaim", "existingClaim": "sessions"}},
    {"serviceMonitor": {"enabled": True, "tokenSecret": {"name": "metrics"}}},
    {"image": {"digest": "sha256:" + "0" * 64}},
]
INVALID = [
    {"replicas": 3},
    {"replica": 1},
    {"state": {"type": "persistentVolumeClaim"}},
    {"state": {"type": "hostPath"}},
    {"serviceMonitor": {"enabled": True}},
    {"containerPort": 0},
    {"image": {"digest": "sha256:0"}},
    {"config": ""},
]


def changed(change):
    result = copy.deepcopy(values)
    for name, value in change.items():
        result[name] = {**result.get(name, {}), **value} if isinstance(value, dict) else value
    return result


for change in VALID:
    validator.validate(changed(change))
for change in INVALID:
    if validator.is_valid(changed(change)):
        sys.exit(f"the schema accepts {change}")
print(f"{len(files)} files, {len(VALID)} valid and {len(INVALID)} invalid changes of the values")
