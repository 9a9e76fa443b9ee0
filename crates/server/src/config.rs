//! The configuration: a TOML file, then `PORTCULLIS_*` from the environment, then flags.

mod file;
mod load;
mod origin;
mod secret;
mod span;

pub(crate) use file::{
    Audit, AuditTarget, Authorization, Claim, Config, ForwardedHeader, IntrospectionAuth, Issuer, Limits, RateLimit,
    Resource, Route, Rule, Session, Sessions, Tls, Upstream, Validation,
};
pub(crate) use load::{Loaded, Overrides, from_text, load, nearest};
pub(crate) use origin::effective;
pub(crate) use secret::SecretSource;
pub(crate) use span::Span;
