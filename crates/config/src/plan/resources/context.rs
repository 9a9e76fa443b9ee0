//! [`Context`]: what the validation of every resource needs.

use crate::{Config, file::Limits};
use portcullis_metadata::Issuer;
use url::Url;

use crate::plan::IssuerPlan;

/// What the validation of every resource needs.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) base_url: &'a Url,
    /// The plans of all issuers in their order; `None` for an invalid one.
    pub(super) issuers: &'a [Option<IssuerPlan>],
    /// The issuer of the broker, if there is one.
    pub(super) broker: Option<&'a Issuer>,
    /// Valid limits: the configured ones, or the defaults if those are invalid.
    pub(super) limits: &'a Limits,
}
