//! Transactions: approved requests whose user signs in at a provider.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_authorization_server::StoreError;
use portcullis_state_store::records::Table;
use serde::{Deserialize, Serialize};

use super::{PendingRequest, TransactionSecrets};
use crate::store::{hash, sealed_records::SealedRecords};

/// The transactions, by the hash of `state`.
const TRANSACTIONS: Table = Table("broker_transactions");
/// How long a user may take to sign in at the provider.
pub(crate) const LIFETIME: Duration = Duration::from_secs(10 * 60);
const MAX_TRANSACTIONS: u64 = 10_000;
/// The maximum number of transactions that one browser can continue (OR3).
const MAX_OF_BROWSER: usize = 8;
/// The first part of the names of cookies.
const COOKIE: &str = "transaction-";
/// The number of bytes of the hash in the name of a cookie, and their length in base64url.
const COOKIE_HASH: usize = 12;
const COOKIE_HASH_CHARS: usize = 16;

/// An approved request whose user signs in at a provider.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) request: PendingRequest,
    /// The name of the provider.
    pub(crate) provider: Box<str>,
    pub(crate) nonce: Box<str>,
    pub(crate) verifier: Box<str>,
    /// The hash of the cookie of the browser in which the user approved.
    cookie: [u8; 32],
    /// Whether the client is on another machine, so that the user carries the response there.
    pub(crate) is_remote: bool,
    pub(crate) memory: Memory,
}

/// What a consent has to do with remembered ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Memory {
    /// The user was asked, and will be asked again.
    None,
    /// The user was asked, and wants this to be remembered.
    Remember,
    /// The user was not asked, because the user with this subject approved before.
    Remembered(Box<str>),
}

/// Why a transaction does not continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransactionError {
    /// There is no such transaction, it has expired, or it continued before.
    #[error("the transaction is unknown")]
    Unknown,
    /// The browser is not the one in which the user approved.
    #[error("the browser has no cookie of the transaction")]
    Browser,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Transaction {
    pub(crate) fn new(
        request: PendingRequest,
        provider: &str,
        secrets: &TransactionSecrets,
        is_remote: bool,
        memory: Memory,
    ) -> Self {
        Self {
            request,
            provider: provider.into(),
            nonce: secrets.nonce.as_str().into(),
            verifier: secrets.verifier.as_str().into(),
            cookie: hash(&[&secrets.cookie]),
            is_remote,
            memory,
        }
    }

    /// Stores the transaction. The same approval, sent twice, stores it once.
    pub(crate) async fn begin(
        &self,
        records: &SealedRecords,
        state: &str,
    ) -> Result<(), StoreError> {
        let key = hash(&[state]);
        let mut change = records.change();
        change.expect_absent(TRANSACTIONS, &key);
        change.expect_below(TRANSACTIONS, MAX_TRANSACTIONS);
        let expires = records.now().saturating_add(LIFETIME);
        change.put(TRANSACTIONS, &key, self, expires)?;
        change.commit().await.map(drop)
    }

    /// Takes the transaction with this `state`, once. `cookie` is that of the browser: without it,
    /// the transaction stays (CO2).
    pub(crate) async fn take(
        records: &SealedRecords,
        state: &str,
        cookie: Option<&str>,
    ) -> Result<Self, TransactionError> {
        let key = hash(&[state]);
        let current = records.read::<Self>(TRANSACTIONS, &key).await?;
        let current = current.ok_or(TransactionError::Unknown)?;
        // Both are hashes, so a comparison reveals nothing about the cookie.
        if cookie.map(|cookie| hash(&[cookie])) != Some(current.value.cookie) {
            return Err(TransactionError::Browser);
        }
        let mut change = records.change();
        change.expect(TRANSACTIONS, &key, &current);
        change.delete(TRANSACTIONS, &key);
        match change.commit().await? {
            true => Ok(current.value),
            false => Err(TransactionError::Unknown),
        }
    }
}

/// Returns the name of the cookie of the transaction with this `state`, which differs for each, so
/// that several sign-ins can take place in one browser.
pub(crate) fn cookie_name(state: &str) -> String {
    let hash = hash(&["transaction cookie", state]);
    let hash = URL_SAFE_NO_PAD.encode(&hash[..COOKIE_HASH]);
    format!("{COOKIE}{hash}")
}

/// Returns those of a browser's cookies that it must remove when it gets a transaction with the
/// cookie `new`: the oldest, which browsers send first (RFC 6265 section 5.4). At most 8 at a time.
pub(crate) fn surplus_cookies<'c>(
    cookies: impl Iterator<Item = &'c str>,
    new: &str,
) -> impl Iterator<Item = &'c str> {
    let earlier: Vec<_> = cookies
        .filter(|name| is_cookie_name(name) && *name != new)
        .collect();
    let surplus = (earlier.len() + 1).saturating_sub(MAX_OF_BROWSER);
    earlier.into_iter().take(surplus.min(MAX_OF_BROWSER))
}

fn is_cookie_name(name: &str) -> bool {
    let is_of_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.strip_prefix(COOKIE)
        .is_some_and(|hash| hash.len() == COOKIE_HASH_CHARS && hash.bytes().all(is_of_base64url))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OR3: a browser keeps its last transactions, and nothing else is removed.
    #[test]
    fn the_oldest_cookies_are_removed() {
        let names: Vec<_> = (0..12).map(|n| cookie_name(&n.to_string())).collect();
        let surplus = |count: usize, new: &str| {
            let others = ["browser", "transaction-", "transaction-\"; Path=/x;aaaaa"];
            let cookies = others
                .into_iter()
                .chain(names[..count].iter().map(String::as_str));
            surplus_cookies(cookies, new).count()
        };
        assert_eq!(surplus(7, &names[7]), 0);
        assert_eq!(surplus(8, &names[7]), 0, "the same approval again");
        assert_eq!(surplus(8, &names[8]), 1);
        let first = surplus_cookies(names.iter().map(String::as_str), "new").next();
        assert_eq!(first, Some(&*names[0]));
        let many: Vec<_> = (0..1000).map(|n| cookie_name(&n.to_string())).collect();
        let removed = surplus_cookies(many.iter().map(String::as_str), "new").count();
        assert_eq!(removed, 8);
    }
}
