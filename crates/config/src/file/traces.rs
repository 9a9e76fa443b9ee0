use std::{collections::BTreeMap, path::PathBuf};

use crate::SecretSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[traces]`: where spans are sent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// The URL of an OTLP receiver (HTTP with JSON): `https`, or `http` on loopback.
    #[schemars(example = "http://127.0.0.1:4318/v1/traces")]
    pub endpoint: String,
    /// The part of the requests that is sampled, from 0 to 1.
    #[serde(default = "default_sample")]
    pub sample: f64,
    /// The name of this service in the spans.
    #[serde(default = "default_service_name")]
    pub service_name: String,
    /// What the `traceparent` of a client is used for.
    #[serde(default)]
    pub client: TracesClient,
    /// Headers for the receiver, such as `authorization`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = BTreeMap::from([("authorization", SecretSource::File("/run/secrets/otlp-authorization".into()))]))]
    pub headers: BTreeMap<String, SecretSource>,
    /// A PEM file of certificates that are trusted in addition for the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "/etc/portcullis/otlp-ca.pem")]
    pub ca_file: Option<PathBuf>,
}

/// What the `traceparent` of a client is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TracesClient {
    /// Nothing.
    #[default]
    Restart,
    /// Requests continue the client's trace. Its sampled flag is ignored.
    Join,
    /// Requests continue the client's trace, and are sampled if the client's span is.
    Trust,
}

fn default_sample() -> f64 {
    0.01
}

fn default_service_name() -> String {
    "portcullis".to_owned()
}
