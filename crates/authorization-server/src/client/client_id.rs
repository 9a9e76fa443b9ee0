//! [`derive_client_id`]: one identifier for equal registrations.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{
    Hmac, KeyInit as _, Mac as _,
    digest::{Key, Output},
};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{
    client::{Client, GrantType, RedirectUri},
    random::{RandomError, random_bytes},
};

const PREFIX: &str = "client_";
/// The length of an identifier before its encoding: 128 bits.
const ID_BYTES: usize = 16;
/// Separates this use of the key from others.
const LABEL: &[u8] = b"portcullis client identifier, form 1";

/// Returns the identifier of a client that registers. That of a public client is a keyed hash of
/// its metadata, so that equal registrations have one identifier and a flood of them one record.
/// The order of redirect URIs and grant types makes no difference. A client with a credential gets
/// a random identifier, because each registration has a credential of its own.
///
/// The hash covers what the client is after validation: name, redirect URIs and grant types. A
/// registrant without the key cannot search for metadata with the identifier of another client.
///
/// # Errors
/// Fails when a random identifier is needed, and the operating system gives no random bytes.
pub fn derive_client_id(key: &[u8; 32], client: &Client) -> Result<String, RandomError> {
    let id = if client.credential.is_public() {
        public_id(key, client)
    } else {
        random_bytes()?
    };
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(id)))
}

fn public_id(key: &[u8; 32], client: &Client) -> [u8; ID_BYTES] {
    let mut block = Zeroizing::new(Key::<Hmac<Sha256>>::default().0);
    block[..key.len()].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&(*block).into());
    update_text(&mut mac, LABEL);
    update_list(&mut mac, client.name.iter().map(|name| &**name).collect());
    let uris = client.redirect_uris.iter().map(RedirectUri::as_str);
    update_list(&mut mac, uris.collect());
    let grant_types = client.grant_types.iter().copied().map(GrantType::as_str);
    update_list(&mut mac, grant_types.collect());
    let output: Output<Hmac<Sha256>> = mac.finalize().into_bytes();
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(&output.0[..ID_BYTES]);
    id
}

/// Adds a set. Its length and those of its members precede them, so that no two sets are encoded
/// alike.
fn update_list(mac: &mut Hmac<Sha256>, mut members: Vec<&str>) {
    members.sort_unstable();
    members.dedup();
    update_length(mac, members.len());
    for member in members {
        update_text(mac, member.as_bytes());
    }
}

fn update_text(mac: &mut Hmac<Sha256>, text: &[u8]) {
    update_length(mac, text.len());
    mac.update(text);
}

fn update_length(mac: &mut Hmac<Sha256>, length: usize) {
    mac.update(&u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use portcullis_metadata::Secret;
    use proptest::prelude::*;

    use super::*;
    use crate::client::Credential;

    const KEY: [u8; 32] = [7; 32];

    fn client(name: Option<&str>, uris: &[&str], grant_types: &[GrantType]) -> Client {
        Client {
            name: name.map(Box::from),
            redirect_uris: uris
                .iter()
                .map(|uri| RedirectUri::parse_registered(uri).unwrap())
                .collect(),
            credential: Credential::None,
            grant_types: grant_types.to_vec(),
            scopes: None,
            may_introspect: false,
            is_document: false,
        }
    }

    fn id(client: &Client) -> String {
        derive_client_id(&KEY, client).unwrap()
    }

    /// Computed with Python's `hmac`. Another encoding would orphan stored clients.
    #[test]
    fn the_identifier_is_stable() {
        let uris = ["http://127.0.0.1/callback", "app:/callback"];
        let grant_types = [GrantType::AuthorizationCode, GrantType::RefreshToken];
        let client = client(Some("Client"), &uris, &grant_types);
        assert_eq!(id(&client), "client_PzYChAtpTS0Xg5-b-o0lhw");
    }

    #[test]
    fn the_order_makes_no_difference_and_everything_else_does() {
        use GrantType::{AuthorizationCode as Code, RefreshToken as Refresh};
        let uris = ["http://127.0.0.1/a", "http://127.0.0.1/b"];
        let base = id(&client(Some("a"), &uris, &[Code, Refresh]));
        let reordered = client(Some("a"), &[uris[1], uris[0], uris[1]], &[Refresh, Code]);
        assert_eq!(id(&reordered), base);
        let different: BTreeSet<_> = [
            client(Some("b"), &uris, &[Code, Refresh]),
            client(None, &uris, &[Code, Refresh]),
            client(Some("a"), &uris[..1], &[Code, Refresh]),
            client(Some("a"), &["http://127.0.0.1/ab"], &[Code, Refresh]),
            client(Some("a"), &uris, &[Code]),
        ]
        .iter()
        .map(id)
        .chain([base, derive_client_id(&[8; 32], &reordered).unwrap()])
        .collect();
        assert_eq!(different.len(), 7);
    }

    #[test]
    fn a_client_with_a_credential_gets_a_random_identifier() {
        let mut client = client(None, &["https://client.example/"], &[]);
        client.credential = Credential::SecretPost(Secret::new("secret"));
        assert_ne!(id(&client), id(&client));
        assert_eq!(id(&client).len(), PREFIX.len() + 22);
    }

    proptest! {
        /// Parts of one member never count as part of another.
        #[test]
        fn different_names_and_paths_have_different_identifiers(
            left in ("[a-c]{0,3}", "[a-c]{0,3}"),
            right in ("[a-c]{0,3}", "[a-c]{0,3}"),
        ) {
            let of = |(name, path): &(String, String)| {
                id(&client(Some(name), &[&format!("http://127.0.0.1/{path}")], &[]))
            };
            prop_assert_eq!(of(&left) == of(&right), left == right);
        }
    }
}
