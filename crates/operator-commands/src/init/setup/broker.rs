//! The answers about `[broker]`: whether this server issues the tokens, and where users sign in.

use anyhow::anyhow;
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::{EscapedText, Issuer};
use portcullis_terminal::tell;
use url::Url;

use super::{Found, Question, Rejection, Setup, issuer};
use crate::{
    init::{
        broker::{
            BrokerValues, default_variable, example_of_allow, explanation_of_allow, needs_allow,
        },
        source::{Source, kind_of, tenant},
    },
    online_check,
};

impl Setup<'_> {
    /// Sets the provider of `--broker-kind` if no issuer is needed for it.
    pub(super) fn set_provider_without_issuer(&mut self) -> anyhow::Result<bool> {
        let Some(kind) = self.arguments.broker_kind_without_issuer() else {
            return Ok(false);
        };
        self.set_broker(Source::of_kind(kind))
            .map_err(|rejection| rejection.into_error("--broker-kind"))?;
        self.problems += self.test_provider()?;
        Ok(true)
    }

    /// Whether this server issues the tokens in place of an issuer at which clients cannot
    /// register. `reason` says that they cannot.
    pub(super) fn uses_broker(&mut self, reason: &str) -> anyhow::Result<bool> {
        if self.arguments.wants_broker() {
            return Ok(true);
        }
        match &mut self.questions {
            Some(questions) => {
                questions.tell(reason)?;
                questions.agree("Let this server issue the tokens, and sign users in there?")
            }
            None => {
                tell(format_args!(
                    "{}; with --broker, this server issues the tokens, and signs users in there",
                    EscapedText(reason)
                ));
                Ok(false)
            }
        }
    }

    /// Sets the provider at a URL that a person entered. `kind` is the one of the URL.
    pub(super) fn set_entered_provider(
        &mut self,
        kind: ProviderKind,
        entered: &Url,
    ) -> Result<(), Rejection> {
        let kind = self.arguments.broker_kind.unwrap_or(kind);
        let needs_metadata = kind == ProviderKind::Entra && tenant(entered).is_none();
        let mut issuer = entered.to_string();
        if needs_metadata && !self.arguments.offline {
            // The metadata of a domain of Entra ID has the issuer with the ID of the tenant.
            let found = self.runtime.block_on(issuer::find(&issuer, self.product));
            if let Ok(Found::Issuer { issuer: found, .. } | Found::Other { issuer: found, .. }) =
                found
            {
                found.as_str().clone_into(&mut issuer);
            }
        }
        self.set_broker(Source::new(kind, &issuer)?)
    }

    /// Sets the provider with this issuer.
    pub(super) fn set_provider(&mut self, issuer: &Issuer) -> Result<(), Rejection> {
        let kind = self
            .arguments
            .broker_kind
            .unwrap_or_else(|| kind_of(issuer.url()));
        self.set_broker(Source::new(kind, issuer.as_str())?)
    }

    /// Sets the provider, and asks for the application there and for who may sign in.
    fn set_broker(&mut self, source: Source) -> Result<(), Rejection> {
        let kind = source.kind;
        let setting = source.redirect_uri_setting();
        let broker = BrokerValues::new(source);
        let redirect_uri = broker.redirect_uri(&self.answers.values().base_url);
        self.answers.set_broker(broker)?;
        self.tell_user(&format!(
            "Register an application there ({setting}), with the redirect URI"
        ))?;
        self.tell_user(&redirect_uri)?;
        let client = Question {
            text: "Client ID of the application",
            option: "--broker-client-id",
            given: self.arguments.broker_client_id.as_deref(),
            default: None,
            is_optional: false,
        };
        self.answer(
            client,
            |setup, text| Ok(setup.answers.set_broker_client(text)?),
            |_| Ok(0),
        )?;
        let secret = Question {
            text: "Environment variable that will have its secret",
            option: "--broker-secret-env",
            given: self.arguments.broker_secret_env.as_deref(),
            default: Some(default_variable(kind)),
            is_optional: true,
        };
        self.answer(
            secret,
            |setup, text| Ok(setup.answers.set_broker_secret(text)?),
            |_| Ok(0),
        )?;
        Ok(self.ask_who_may_sign_in(kind)?)
    }

    /// Asks only if anyone can have an account at the provider.
    fn ask_who_may_sign_in(&mut self, kind: ProviderKind) -> anyhow::Result<()> {
        let given = &self.arguments.broker_allow;
        if !given.is_empty() {
            let rules = given.iter().map(String::as_str);
            return self
                .answers
                .set_broker_allow(rules)
                .map_err(|reason| anyhow!("--broker-allow: {reason}"));
        }
        if !needs_allow(kind) {
            return Ok(());
        }
        self.tell_user(&format!(
            "Anyone can have an account at {}. Write who may sign in as {}: {}.",
            kind.display_name(),
            example_of_allow(kind).unwrap_or_default(),
            explanation_of_allow(kind)
        ))?;
        let allow = Question {
            text: "Who may sign in",
            option: "--broker-allow",
            given: None,
            default: None,
            is_optional: false,
        };
        self.answer(
            allow,
            |setup, text| Ok(setup.answers.set_broker_allow([text])?),
            |_| Ok(0),
        )
    }

    /// Tests the provider with the application, if its secret is there. Returns the number of
    /// problems.
    pub(super) fn test_provider(&mut self) -> anyhow::Result<usize> {
        if self.answers.has_broker_secret() {
            return self.test(online_check::Part::Providers);
        }
        if let Some(broker) = &self.answers.values().broker {
            tell(format_args!(
                "the environment variable {} is not set, so the provider is not tested",
                broker.secret_variable
            ));
        }
        Ok(0)
    }
}
