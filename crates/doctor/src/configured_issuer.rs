//! [`ConfiguredIssuer`]: an issuer as a server that trusts it is configured.

mod absent_metadata;
mod clock;
mod document;
mod introspection;
mod keys;
mod metadata;
mod providers;
mod request;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use portcullis_discovery::Fetch;
use portcullis_metadata::{Clock, ResourceUri};
use portcullis_verifier::IssuerSettings;

pub use self::keys::algorithms_to_configure;
use crate::Step;

/// The timeout of each request.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The fix for a response of a firewall.
const FIREWALL_FIX: &str = "let the firewall pass requests of this server and of MCP clients: they cannot answer its challenges";

/// An issuer as a server that trusts its tokens is configured. Examined by
/// [`Doctor::examine_issuer`](crate::Doctor::examine_issuer).
#[derive(Clone, Debug)]
pub struct ConfiguredIssuer<'a> {
    /// The name of its settings in fixes, such as `issuer[0]`.
    pub key: &'a str,
    /// Its settings.
    pub settings: &'a IssuerSettings,
    /// What the server uses it for.
    pub purpose: IssuerPurpose,
    /// The resources that accept its tokens.
    pub resources: Vec<ConfiguredResource<'a>>,
}

/// What a server uses an issuer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerPurpose {
    /// Resources accept its access tokens.
    AccessTokens,
    /// An authorization server signs users in there and verifies its ID tokens. Clients do not see
    /// it.
    SignIn,
}

/// A resource that accepts the tokens of an issuer.
#[derive(Clone, Debug)]
pub struct ConfiguredResource<'a> {
    /// Its path, for display.
    pub endpoint: &'a str,
    /// Its identifier.
    pub resource: &'a ResourceUri,
    /// The scopes that it requires or lists.
    pub scopes: Vec<&'a str>,
}

/// An examination of an issuer in progress.
struct Examination<'a> {
    issuer: &'a ConfiguredIssuer<'a>,
    fetch: &'a Arc<dyn Fetch>,
    clock: &'a dyn Clock,
    steps: Vec<Step>,
    on_step: &'a mut (dyn FnMut(&Step) + Send),
}

/// Examines the metadata, the keys and the introspection endpoint.
pub(crate) async fn examine(
    issuer: &ConfiguredIssuer<'_>,
    fetch: &Arc<dyn Fetch>,
    clock: &dyn Clock,
    on_step: &mut (dyn FnMut(&Step) + Send),
) -> Vec<Step> {
    let mut examination = Examination {
        issuer,
        fetch,
        clock,
        steps: Vec::new(),
        on_step,
    };
    let metadata = examination.metadata().await;
    examination.keys(metadata.as_deref()).await;
    examination.introspection(metadata.as_deref()).await;
    examination.steps
}

impl Examination<'_> {
    fn finish_step(&mut self, step: Step) {
        (self.on_step)(&step);
        self.steps.push(step);
    }
}
