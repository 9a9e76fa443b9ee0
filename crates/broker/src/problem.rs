//! [`Problem`]: what a user sees if the browser cannot be redirected to the client.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::RETRY_AFTER};
use portcullis_authorization_server::random_secret;
use portcullis_guard::limit::LimitExceeded;
use portcullis_identity_provider::ProviderError;
use portcullis_reason_codes::ReasonCodes;

use crate::{
    Broker,
    pages::{ErrorPage, NoCookiePage, Page, UnknownClientPage},
};

/// What a user sees if the browser cannot be redirected to the client.
#[derive(Clone, Copy, Debug, ReasonCodes)]
pub(crate) enum Problem {
    /// The client address opened too many pages.
    #[code = "page.too_many_requests"]
    TooManyRequests(LimitExceeded),
    /// The client is not registered, or no longer.
    #[code = "page.unknown_client"]
    UnknownClient,
    /// The client or its redirect URI cannot be used, for the reason in the log line.
    #[code = "page.request_untrusted"]
    Untrusted(&'static str),
    /// The client's document is out of reach, or the records cannot be read. The log line has the
    /// reason.
    #[code = "page.client_unavailable"]
    ClientUnavailable(&'static str),
    /// The answer to a consent page comes from another origin.
    #[code = "page.cross_origin"]
    CrossOrigin,
    /// The answer to a consent page is not one that the page sends.
    #[code = "page.form_malformed"]
    MalformedForm,
    /// The consent page was opened more than half an hour ago, in another browser, or before a key
    /// was removed.
    #[code = "page.form_expired"]
    FormExpired,
    /// The redirect URI of the client is not allowed any more.
    #[code = "page.redirect_not_usable"]
    RedirectNotUsable,
    /// The browser sent no cookie of this server.
    #[code = "page.no_cookie"]
    NoCookie,
    /// The sign-in has expired, was completed before, or did not begin here.
    #[code = "page.sign_in_unknown"]
    UnknownTransaction,
    /// The records cannot be read or written.
    #[code = "page.store_unavailable"]
    StoreUnavailable,
    /// The server failed.
    #[code = "page.server_error"]
    ServerError,
}

struct Text {
    status: StatusCode,
    title: &'static str,
    reason: &'static str,
    remedy: &'static str,
}

/// The page about a provider that cannot be reached, or whose metadata cannot be used.
const PROVIDER: Text = Text {
    status: StatusCode::SERVICE_UNAVAILABLE,
    title: "You cannot sign in now",
    reason: "The identity provider cannot be reached, or gave an answer that this server does not accept.",
    remedy: TRY_LATER,
};
const START_AGAIN: &str = "Start again in your application.";
const TRY_LATER: &str = "Try again in a few minutes.";

impl Problem {
    fn text(self) -> Text {
        let text = |status, title, reason, remedy| Text {
            status,
            title,
            reason,
            remedy,
        };
        match self {
            Self::TooManyRequests(_) => text(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many requests",
                "Too many sign-ins were started from your network.",
                "Wait for a minute, and try again.",
            ),
            Self::UnknownClient => text(
                StatusCode::BAD_REQUEST,
                "Unknown client",
                "This server does not know the application that sent you here.",
                START_AGAIN,
            ),
            Self::Untrusted(reason) => text(
                StatusCode::BAD_REQUEST,
                "This request cannot be answered",
                reason,
                START_AGAIN,
            ),
            Self::ClientUnavailable(_) => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "You cannot sign in now",
                "This server cannot find out now which application sent you here.",
                TRY_LATER,
            ),
            Self::CrossOrigin => text(
                StatusCode::FORBIDDEN,
                "The answer did not come from this server",
                "Your answer was sent by a page of another site, so it was not accepted.",
                START_AGAIN,
            ),
            Self::MalformedForm => text(
                StatusCode::BAD_REQUEST,
                "The answer is not complete",
                "The page sent an answer that this server does not understand.",
                START_AGAIN,
            ),
            Self::FormExpired => text(
                StatusCode::BAD_REQUEST,
                "This page is too old",
                "The page was opened more than half an hour ago, or in another browser.",
                START_AGAIN,
            ),
            Self::RedirectNotUsable => text(
                StatusCode::BAD_REQUEST,
                "The application is not allowed any more",
                "The operator of this server no longer allows the place to which the answer would go.",
                "Ask the operator of this server.",
            ),
            Self::NoCookie => text(
                StatusCode::BAD_REQUEST,
                "This browser kept no cookie",
                "You were not signed in, because the answer cannot be matched with your request.",
                START_AGAIN,
            ),
            Self::UnknownTransaction => text(
                StatusCode::BAD_REQUEST,
                "This sign-in is not known",
                "The sign-in took more than ten minutes, was completed before, or did not start at this server.",
                START_AGAIN,
            ),
            Self::StoreUnavailable => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "You cannot sign in now",
                "This server cannot store your sign-in.",
                TRY_LATER,
            ),
            Self::ServerError => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong",
                "This server made a mistake.",
                TRY_LATER,
            ),
        }
    }

    /// Returns why, for the log.
    fn cause(self) -> &'static str {
        match self {
            Self::ClientUnavailable(cause) => cause,
            _ => self.text().reason,
        }
    }
}

/// Returns a reference with which an operator finds the log line of what a user sees. Empty if the
/// operating system has no random bytes.
pub(crate) fn reference() -> String {
    random_secret(9).map_or_else(|_| String::new(), |random| random.secret().to_owned())
}

impl Broker {
    /// Returns a page about a problem. Its reference is in the log, too.
    pub(crate) fn problem(&self, problem: &Problem) -> Response<Bytes> {
        let (reference, text) = (reference(), problem.text());
        tracing::info!(
            error.code = problem.code(),
            page.reference = &*reference,
            page.status = text.status.as_u16(),
            "displayed the page {:?}: {}",
            text.title,
            problem.cause()
        );
        let page = match problem {
            Problem::UnknownClient => UnknownClientPage {
                correlation_id: &reference,
            }
            .render(&self.layout),
            Problem::NoCookie => NoCookiePage {
                correlation_id: &reference,
            }
            .render(&self.layout),
            _ => self.error_page(&text, &reference),
        };
        let mut response = page.into_response(text.status);
        if let Problem::TooManyRequests(exceeded) = problem {
            let seconds = HeaderValue::from(exceeded.retry_after_secs());
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }

    /// Returns the page about a provider to which the browser cannot be sent. The log line about
    /// the provider has the reference.
    pub(crate) fn provider_problem(
        &self,
        provider: &str,
        error: &ProviderError,
    ) -> Response<Bytes> {
        let reference = reference();
        self.provider_failed(provider, error, Some(&reference));
        self.error_page(&PROVIDER, &reference)
            .into_response(PROVIDER.status)
    }

    fn error_page(&self, text: &Text, reference: &str) -> Page {
        ErrorPage {
            title: text.title,
            reason: text.reason,
            remedy: text.remedy,
            correlation_id: reference,
        }
        .render(&self.layout)
    }
}
