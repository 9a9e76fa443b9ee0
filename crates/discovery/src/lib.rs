#![doc = include_str!("../README.md")]

mod discovery;
mod fetch;
mod url_policy;

pub use discovery::{
    Attempt, AttemptOutcome, Attempts, DiscoveredResource, Discovery, DiscoveryError,
    InsecureEndpoint, Lookup, LookupContent, LookupResponse, MetadataSource, ResourceMatch,
    ResourceOptions, Search, insecure_endpoints,
};
pub use fetch::{
    BodyStream, BoxFuture, CertificateProblem, CertificateVariableError, Fetch, FetchError,
    FetchRequest, FetchResponse, FetchSettingsError, NetworkError, NetworkFailure, OpenResponse,
    Product, RecordingFetch, ResponseExcerpt, SentSecrets,
};
#[cfg(feature = "reqwest")]
pub use fetch::{FetchSettings, HttpFetch};
pub use url_policy::{ChainPolicy, UrlPolicy, UrlPolicyError};
