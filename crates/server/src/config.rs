//! The configuration: a TOML file, then `PORTCULLIS_*` from the environment, then flags.

mod changes;
mod file;
mod load;
mod origin;
mod reasons;
mod restart;
mod secret;
mod span;

pub(crate) use changes::{Change, changes};
pub(crate) use file::{
    ADMIN_TOKEN_VARIABLE, Admin, AdminListen, Audit, AuditTarget, Authorization, Claim, Config, ForwardedHeader,
    IntrospectionAuth, Issuer, Limits, RateLimit, Reload, Resource, Route, Rule, Session, Sessions, Shared, Tls,
    Traces, TracesClient, Upstream, Validation,
};
#[cfg(any(feature = "dev", test))]
pub(crate) use load::from_text;
pub(crate) use load::{Loaded, Overrides, load, load_all_reasons, nearest};
pub(crate) use origin::effective;
pub(crate) use restart::keep_until_restart;
pub(crate) use secret::SecretSource;
pub(crate) use span::Span;
