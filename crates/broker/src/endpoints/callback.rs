//! The redirect URI at a provider.

use bytes::Bytes;
use http::{Response, StatusCode, header::SET_COOKIE};
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Grant, Params, Store as _, StoreError, random_secret,
};
use portcullis_identity_provider::{Callback, Identity, ProviderError, ProviderTokens};
use portcullis_metadata::{Scopes, Secret};
use portcullis_reason_codes::ReasonCodes;

use super::{BrokerRequest, respond};
use crate::{
    Broker,
    access::{Access, AccessDenial},
    access_tokens::TokenTooLarge,
    clients::logged_client_id,
    observer::BrokerEvent,
    pages::{OtherMachinePage, RedirectTarget},
    problem::{Problem, reference},
    records::{GrantTerms, SignInRecord},
    sign_in::{Memory, RememberedConsent, Transaction, TransactionError, cookie_name},
};

/// Who signed in.
enum SignedIn {
    /// The user who approved. This is the code for the client.
    Code(Secret),
    /// Another user than the one whose consent was remembered.
    Other,
}

/// Why a sign-in does not lead to a code.
#[derive(Debug, thiserror::Error, ReasonCodes)]
pub(crate) enum SignInError {
    #[error(transparent)]
    #[code(transparent)]
    Provider(#[from] ProviderError),
    /// The user cancelled at the identity provider, or the provider denied the sign-in.
    #[error("the sign-in was denied at the identity provider")]
    #[code = "provider.denied"]
    Denied,
    /// The identity provider answered with an error of its own.
    #[error("the identity provider answered with an error")]
    #[code = "provider.error"]
    Failed,
    #[error(transparent)]
    #[code(transparent)]
    Access(#[from] AccessDenial),
    #[error("no access token can be issued: {0}")]
    #[code(transparent)]
    TokenTooLarge(#[from] TokenTooLarge),
    #[error(transparent)]
    #[code(transparent)]
    Store(#[from] StoreError),
    /// No provider has the redirect URI, or the stored request of the client makes no code.
    #[error("the code cannot be issued")]
    #[code = "broker.malformed"]
    Malformed,
}

impl SignInError {
    /// Returns what the client shows to the user: what the user can do. It has no detail of the
    /// provider, of the user and of the rules (PR7).
    fn response(self) -> ErrorResponse {
        use ErrorCode::{AccessDenied, ServerError, TemporarilyUnavailable};
        let (code, description) = match self {
            Self::Provider(ProviderError::Unreachable(_)) => (
                TemporarilyUnavailable,
                "the identity provider cannot identify the user now; try again later",
            ),
            Self::Provider(ProviderError::ApplicationRejected(_)) => (
                TemporarilyUnavailable,
                "the identity provider does not accept this server; tell the operator of this server",
            ),
            Self::Provider(error) if error.is_temporary() => (
                TemporarilyUnavailable,
                "this server does not accept the answer of the identity provider; try again, or tell the operator of this server",
            ),
            Self::Access(_) | Self::Provider(ProviderError::TenantNotAllowed) => (
                AccessDenied,
                "this account may not use this server; sign in with another account, or ask the operator of this server for access",
            ),
            Self::Denied | Self::Provider(_) => (
                AccessDenied,
                "the sign-in was not completed at the identity provider; start again, with another account if you have one",
            ),
            Self::Failed => (
                ServerError,
                "the identity provider answered with an error; tell the operator of this server",
            ),
            Self::TokenTooLarge(_) => (
                ServerError,
                "this server cannot issue a token for this account; tell the operator of this server",
            ),
            Self::Malformed => (ServerError, "the user cannot be signed in; start again"),
            Self::Store(error) => return error.into(),
        };
        ErrorResponse::new(code, description)
    }
}

impl Broker {
    /// Continues a transaction with the answer of the provider at this position. The cookie of the
    /// browser is checked before the provider's code is sent anywhere (CO2).
    pub(super) async fn callback(
        &self,
        position: usize,
        request: &BrokerRequest,
    ) -> Response<Bytes> {
        if let Err(exceeded) = self.limits.pages(request.address) {
            return self.problem(&Problem::TooManyRequests(exceeded));
        }
        let params = request.query();
        let Ok(Some(state)) = params.get("state") else {
            return self.problem(&Problem::UnknownTransaction);
        };
        let cookie = self.cookies.get(&request.headers, &cookie_name(state));
        let taken = Transaction::take(self.store.records(), state, cookie).await;
        let transaction = match taken {
            Ok(transaction) => transaction,
            Err(TransactionError::Unknown) => {
                return self.problem(&Problem::UnknownTransaction);
            }
            Err(TransactionError::Browser) => {
                self.rejected(
                    "callback",
                    "no_cookie",
                    "the browser has no cookie of the sign-in",
                );
                return self.problem(&Problem::NoCookie);
            }
            Err(TransactionError::Store(error)) => {
                self.store_failed(&error);
                return self.problem(&Problem::StoreUnavailable);
            }
        };
        let mut response = self.complete(position, request, transaction, &params).await;
        if let Some(cookie) = self.cookies.remove(&cookie_name(state)) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }

    /// Signs the user in, and sends the browser back to the client.
    async fn complete(
        &self,
        position: usize,
        request: &BrokerRequest,
        transaction: Transaction,
        params: &Params,
    ) -> Response<Bytes> {
        let redirect = transaction.request.redirect();
        let Some(redirect) = redirect.filter(|redirect| self.is_usable(redirect)) else {
            return self.problem(&Problem::RedirectNotUsable);
        };
        let issuer = &self.settings.issuer;
        let location = match self.sign_in(position, request, &transaction, params).await {
            Ok(SignedIn::Other) => return self.ask_another_user(request, transaction).await,
            Ok(SignedIn::Code(code)) => {
                transaction
                    .request
                    .code_location(&redirect, code.secret(), issuer)
            }
            Err(error) => {
                let reference = reference();
                self.sign_in_failed(&transaction, &error, &reference);
                let ErrorResponse { code, description } = error.response();
                let description = format!("{description} (reference {reference})");
                return respond::redirect(&transaction.request.described_error_location(
                    &redirect,
                    code,
                    &description,
                    issuer,
                ));
            }
        };
        let target = RedirectTarget::parse(redirect.as_str()).filter(|_| transaction.is_remote);
        match target {
            Some(target) => OtherMachinePage {
                callback: &location,
                redirect: &target,
            }
            .render(&self.layout)
            .into_response(StatusCode::OK),
            None => respond::redirect(&location),
        }
    }

    /// Identifies the user and issues a code.
    async fn sign_in(
        &self,
        position: usize,
        request: &BrokerRequest,
        transaction: &Transaction,
        params: &Params,
    ) -> Result<SignedIn, SignInError> {
        let provider = self.providers.get(position).ok_or(SignInError::Malformed)?;
        // The redirect URI names the provider (PR2).
        if *transaction.provider != *provider.name() {
            return Err(ProviderError::IssuerMismatch.into());
        }
        let parameter = |name| params.get(name).map_err(|_| SignInError::Failed);
        if let Some(error) = parameter("error")? {
            provider.check_response_issuer(parameter("iss")?).await?;
            return Err(match error {
                "access_denied" | "consent_required" | "interaction_required" => {
                    SignInError::Denied
                }
                "temporarily_unavailable" => {
                    ProviderError::Unreachable("temporarily_unavailable".into()).into()
                }
                _ => SignInError::Failed,
            });
        }
        let code = parameter("code")?.ok_or(SignInError::Failed)?;
        let response = provider
            .redeem(&Callback {
                code,
                iss: parameter("iss")?,
                redirect_uri: &self.callback_url(provider.name()),
                verifier: &transaction.verifier,
            })
            .await?;
        let identity = provider
            .identify(&response, Some(&transaction.nonce))
            .await?;
        if let Memory::Remembered(subject) = &transaction.memory
            && *subject != identity.subject
        {
            return Ok(SignedIn::Other);
        }
        let code = self
            .issue_code(position, transaction, &identity, response.tokens())
            .await?;
        if transaction.memory == Memory::Remember
            && let Some(browser) = self.browser(request)
        {
            let (records, pending) = (self.store.records(), &transaction.request);
            let remembered = RememberedConsent::remember(
                records,
                browser,
                pending,
                provider.name(),
                &identity.subject,
            );
            // Without it, the user is asked again.
            if let Err(error) = remembered.await {
                self.store_failed(&error);
            }
        }
        Ok(SignedIn::Code(code))
    }

    /// Asks a user for whom the remembered consent of another one was used.
    async fn ask_another_user(
        &self,
        request: &BrokerRequest,
        transaction: Transaction,
    ) -> Response<Bytes> {
        if let Some(browser) = self.browser(request) {
            let records = self.store.records();
            let forgotten = RememberedConsent::forget(records, browser, &transaction.request);
            if let Err(error) = forgotten.await {
                self.store_failed(&error);
            }
        }
        self.ask_user(request, transaction.request)
    }

    async fn issue_code(
        &self,
        position: usize,
        transaction: &Transaction,
        identity: &Identity,
        tokens: &ProviderTokens,
    ) -> Result<Secret, SignInError> {
        let provider = self
            .settings
            .providers
            .get(position)
            .ok_or(SignInError::Malformed)?;
        let access = Access::of(&self.settings, provider, identity)?;
        let scopes: Scopes = transaction.request.scopes().intersection(&access.scopes);
        if scopes.is_empty() {
            return Err(AccessDenial::NoScope.into());
        }
        let name = &provider.settings.name;
        let id = random_secret(16).map_err(StoreError::from)?;
        let grant = Grant {
            id: id.secret().into(),
            client_id: transaction.request.client_id.clone(),
            subject: identity.subject.clone(),
            auth_time: identity.auth_time,
            scopes,
            audience: transaction.request.audience.clone(),
            key: None,
        };
        let sign_in = SignInRecord::new(name, identity, tokens, &access, self.clock.now());
        let terms = GrantTerms::new(&grant);
        self.access_tokens
            .check_size(&grant.id, &terms, &sign_in, &grant.scopes)?;
        self.store.add_sign_in(&grant.id, &sign_in).await?;
        let code = transaction
            .request
            .code(grant.clone())
            .ok_or(SignInError::Malformed)?;
        let code = self.store.issue_code(code).await?;
        self.observe(&BrokerEvent::SignedIn {
            provider: name,
            subject: &grant.subject,
            client_id: &grant.client_id,
            grant_id: &grant.id,
        });
        Ok(code)
    }

    /// Logs and reports a failed sign-in, in one line with the reference that the user sees.
    fn sign_in_failed(&self, transaction: &Transaction, error: &SignInError, reference: &str) {
        match error {
            SignInError::Store(error) => self.store_failed_for(error, Some(reference)),
            SignInError::Provider(error @ ProviderError::ApplicationRejected(_)) => {
                return self.provider_failed(&transaction.provider, error, Some(reference));
            }
            _ => tracing::info!(
                provider.name = &*transaction.provider,
                client.id = logged_client_id(&transaction.request.client_id),
                error.code = error.code(),
                page.reference = reference,
                "a sign-in failed: {error}"
            ),
        }
        self.observe(&BrokerEvent::ProviderFailed {
            provider: &transaction.provider,
            code: error.code(),
        });
    }
}
