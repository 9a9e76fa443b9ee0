#![doc = include_str!("../README.md")]

mod fetch;
mod metadata;
mod url_policy;

pub use fetch::{
    BodyStream, BoxFuture, CertificateProblem, CertificateVariableError, Fetch, FetchError,
    FetchRequest, FetchResponse, FetchSettingsError, NetworkError, NetworkFailure, OpenResponse,
    Product, RecordingFetch, ResponseExcerpt, SentSecrets,
};
#[cfg(feature = "reqwest")]
pub use fetch::{FetchSettings, HttpFetch};
pub use metadata::{
    Attempt, AttemptOutcome, Attempts, DiscoveredResource, Discovery, DiscoveryError,
    InsecureEndpoint, Lookup, LookupContent, LookupResponse, MetadataSource, ResourceMatch,
    ResourceOptions, Search, insecure_endpoints,
};
pub use url_policy::{ChainPolicy, UrlPolicy, UrlPolicyError};
