//! The identity providers of the broker: their metadata, their keys, and the application there.

use std::sync::Arc;

use portcullis_broker::BrokerProvider;
use portcullis_config::plan::BrokerPlan;
use portcullis_discovery::{Fetch, FetchSettings, Product};
use portcullis_doctor::{ConfiguredIssuer, Doctor, Finding, IssuerPurpose, Rule, Step};
use portcullis_identity_provider::{IdentityProvider, ProviderError};
use portcullis_metadata::{EscapedText, SystemClock};
use tokio::runtime::Handle;

use super::Steps;

const SETTINGS: Rule = Rule::new("provider.settings", "docs/use/configuration-broker.md");
const APPLICATION: Rule = Rule::new("provider.application", "RFC 6749 section 5.2");
const REDIRECT_URI: Rule = Rule::new("provider.redirect_uri", "RFC 6749 section 3.1.2.2");
const LOGOUT: Rule = Rule::new(
    "provider.logout_uri",
    "OpenID Connect Back-Channel Logout 1.0 section 2.2",
);

/// Examines each provider.
pub(super) async fn examine(
    broker: &BrokerPlan,
    product: Product,
    on_start: &mut dyn FnMut(&str),
    steps: &mut Steps<'_>,
) {
    let providers = broker.settings.providers.iter().zip(&broker.fetch);
    for (position, (provider, fetch)) in providers.enumerate() {
        let examination = Examination {
            key: format!("broker.provider[{position}]"),
            broker,
            provider,
        };
        on_start(&format!(
            "identity provider {}",
            EscapedText(provider.settings.issuer.as_str())
        ));
        examination.run(fetch, product, steps).await;
    }
}

/// The examination of one provider.
struct Examination<'a> {
    key: String,
    broker: &'a BrokerPlan,
    provider: &'a BrokerProvider,
}

impl Examination<'_> {
    async fn run(&self, fetch: &FetchSettings, product: Product, steps: &mut Steps<'_>) {
        let Some(fetch) = super::fetch(&self.key, fetch, product, steps) else {
            return;
        };
        if self.has_usable_issuers(&fetch, steps).await {
            let step = self.application(fetch).await;
            steps.add(step);
        }
    }

    /// Examines the issuers of ID tokens. Returns whether the provider can be used.
    async fn has_usable_issuers(&self, fetch: &Arc<dyn Fetch>, steps: &mut Steps<'_>) -> bool {
        let issuers = match self.provider.settings.id_token_issuers() {
            Ok(issuers) => issuers,
            Err(error) => {
                let mut step = Step::new(format!("the settings of {}", self.key));
                step.findings.push(Finding::problem(
                    SETTINGS,
                    error.to_string(),
                    format!("correct {}", self.key),
                ));
                steps.add(step);
                return false;
            }
        };
        let mut is_usable = true;
        for settings in &issuers {
            let configured = ConfiguredIssuer {
                key: &self.key,
                settings,
                purpose: IssuerPurpose::SignIn,
                resources: Vec::new(),
            };
            let examined = Doctor::new(Arc::clone(fetch))
                .examine_issuer(&configured, steps.on_step)
                .await;
            is_usable &= !examined.iter().any(Step::has_problem);
            steps.done.extend(examined);
        }
        is_usable
    }

    /// Tests the application with a made-up code, and says what to register for it.
    async fn application(&self, fetch: Arc<dyn Fetch>) -> Step {
        let mut step = Step::new(format!("the application of {}", self.key));
        let settings = &self.provider.settings;
        let redirect_uri = self.broker.settings.redirect_uri(&settings.name);
        let clock = Arc::new(SystemClock::new());
        let provider = IdentityProvider::new(settings.clone(), fetch, clock, Handle::current());
        step.findings.push(match provider {
            Ok(provider) => self.tested(provider.check_application(&redirect_uri).await),
            Err(error) => {
                Finding::problem(SETTINGS, error.to_string(), format!("correct {}", self.key))
            }
        });
        step.findings.push(Finding::note(
            REDIRECT_URI,
            format!(
                "its redirect URI at the provider must be {redirect_uri}; whether it is registered there shows only at a sign-in"
            ),
        ));
        if settings.kind.may_send_logout_tokens() {
            let logout_uri = self.broker.settings.logout_uri(&settings.name);
            step.findings.push(Finding::note(
                LOGOUT,
                format!("its back-channel logout URI, if you use it, is {logout_uri}"),
            ));
        }
        step
    }

    /// Returns what the response to a made-up code shows.
    fn tested(&self, result: Result<(), ProviderError>) -> Finding {
        let key = &self.key;
        let error = match result {
            Ok(()) => {
                return Finding::met(
                    APPLICATION,
                    "the token endpoint rejects only a made-up code, not the application",
                );
            }
            Err(error) => error,
        };
        match &error {
            ProviderError::ApplicationRejected(
                "invalid_client" | "incorrect_client_credentials" | "unauthorized_client",
            ) => Finding::problem(
                APPLICATION,
                error.to_string(),
                format!(
                    "correct client_id and client_secret of {key}; the secret may have expired"
                ),
            ),
            ProviderError::ApplicationRejected("redirect_uri_mismatch") => Finding::problem(
                REDIRECT_URI,
                error.to_string(),
                "register the redirect URI below at the provider",
            ),
            ProviderError::ApplicationRejected("application_suspended") => Finding::problem(
                APPLICATION,
                error.to_string(),
                "see the application at the provider",
            ),
            ProviderError::Unreachable(_) => Finding::problem(
                APPLICATION,
                error.to_string(),
                format!(
                    "see why the token endpoint does not answer, or correct ca_file and proxy of {key}"
                ),
            ),
            _ => Finding::note(
                APPLICATION,
                format!(
                    "the response to a made-up code does not show whether the application is accepted: {error}"
                ),
            ),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "dev")]
mod tests;
