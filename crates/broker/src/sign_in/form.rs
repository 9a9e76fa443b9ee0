//! [`ConsentForm`]: the request that a consent page carries.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_authorization_server::random_secret;
use portcullis_metadata::UnixTime;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::PendingRequest;
use crate::{
    keys::{BrokerKeys, Purpose, authenticator},
    sealed::{self, SealError},
};

/// How long a consent page can be answered.
const LIFETIME: Duration = Duration::from_secs(30 * 60);
/// A bound for what is decoded. A request is at most 8 KiB.
const MAX_SEALED: usize = 24 * 1024;

/// The request that a consent page carries. It is sealed and bound to the browser that received the
/// page, so that displaying a page stores nothing, and every copy of it can be answered (CO3, CO7).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConsentForm {
    /// Random, so that each page begins a transaction of its own.
    id: Box<str>,
    expires: u64,
    pub(crate) request: PendingRequest,
}

/// The secrets of the transaction that an approval begins. The same approval, sent twice, has the
/// same ones.
pub(crate) struct TransactionSecrets {
    /// The `state` for the provider.
    pub(crate) state: Zeroizing<String>,
    /// The value of the cookie of the transaction.
    pub(crate) cookie: Zeroizing<String>,
    /// The `nonce` for the ID token.
    pub(crate) nonce: Zeroizing<String>,
    /// The PKCE verifier for the provider (RFC 7636 section 4.1).
    pub(crate) verifier: Zeroizing<String>,
}

impl ConsentForm {
    pub(crate) fn new(
        request: PendingRequest,
        now: UnixTime,
    ) -> Result<Self, portcullis_authorization_server::RandomError> {
        Ok(Self {
            id: random_secret(16)?.secret().into(),
            expires: now.saturating_add(LIFETIME).as_secs(),
            request,
        })
    }

    /// Seals the form for the browser with this cookie.
    pub(crate) fn seal(&self, keys: &BrokerKeys, browser: &str) -> Result<String, SealError> {
        let json = serde_json::to_vec(self).map_err(|_| SealError::Cipher)?;
        let sealed = sealed::seal(keys, Purpose::Forms, &place(browser), &json)?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a form. Returns `None` if it was not made for this browser, or has expired.
    pub(crate) fn open(
        keys: &BrokerKeys,
        browser: &str,
        sealed: &str,
        now: UnixTime,
    ) -> Option<Self> {
        (sealed.len() <= MAX_SEALED).then_some(())?;
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let json = sealed::open(keys, Purpose::Forms, &place(browser), &sealed)?;
        let form: Self = serde_json::from_slice(&json).ok()?;
        (now.as_secs() < form.expires).then_some(form)
    }

    /// Returns the secrets of the transaction with this provider.
    pub(crate) fn secrets(&self, keys: &BrokerKeys, provider: &str) -> Option<TransactionSecrets> {
        let (_, key) = keys.current(Purpose::Forms)?;
        let derive = |label: &str| {
            let parts = [label, &self.id, provider].map(str::as_bytes);
            Zeroizing::new(URL_SAFE_NO_PAD.encode(authenticator(key, &parts)))
        };
        Some(TransactionSecrets {
            state: derive("state"),
            cookie: derive("transaction cookie"),
            nonce: derive("nonce"),
            verifier: derive("verifier"),
        })
    }
}

fn place(browser: &str) -> [&[u8]; 2] {
    [b"consent form", browser.as_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> BrokerKeys {
        BrokerKeys::parse(&BrokerKeys::generate().unwrap()).unwrap()
    }

    fn form(now: UnixTime) -> ConsentForm {
        let request = serde_json::from_value(serde_json::json!({
            "client_id": "c", "redirect_uri": "http://127.0.0.1/cb", "state": "s",
            "challenge": "a", "scopes": "mcp:tools", "audience": null,
            "client_name": null, "document_host": null,
        }));
        ConsentForm::new(request.unwrap(), now).unwrap()
    }

    /// CO3: a form opens only in its browser, and for a limited time.
    #[test]
    fn a_form_belongs_to_a_browser() {
        let keys = keys();
        let now = UnixTime::from_secs(1000);
        let form = form(now);
        let sealed = form.seal(&keys, "browser").unwrap();
        let open =
            |browser: &str, sealed: &str, now| ConsentForm::open(&keys, browser, sealed, now);
        assert_eq!(open("browser", &sealed, now).unwrap().request, form.request);
        assert!(open("other", &sealed, now).is_none());
        assert!(open("browser", &sealed[1..], now).is_none());
        assert!(open("browser", &"a".repeat(MAX_SEALED + 1), now).is_none());
        let end = now.saturating_add(LIFETIME);
        assert!(open("browser", &sealed, end).is_none());
        assert!(ConsentForm::open(&self::keys(), "browser", &sealed, now).is_none());
    }

    /// CO7: the same approval, sent twice, gives the same transaction; another page another one.
    #[test]
    fn an_approval_begins_one_transaction() {
        let keys = keys();
        let now = UnixTime::from_secs(1000);
        let first = form(now);
        let state = |form: &ConsentForm, provider: &str| {
            form.secrets(&keys, provider).unwrap().state.to_string()
        };
        assert_eq!(state(&first, "google"), state(&first, "google"));
        assert_ne!(state(&first, "google"), state(&first, "entra"));
        assert_ne!(state(&first, "google"), state(&form(now), "google"));
        let secrets = first.secrets(&keys, "google").unwrap();
        let all = [
            &secrets.state,
            &secrets.cookie,
            &secrets.nonce,
            &secrets.verifier,
        ];
        assert!(all.iter().all(|secret| secret.len() == 43));
        assert!((1..4).all(|next| all[..next].iter().all(|other| *other != all[next])));
    }
}
