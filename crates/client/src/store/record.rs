//! The serialization of entries: versioned JSON.

use std::{borrow::Cow, io::Write as _};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_jose::DpopKey;
use portcullis_metadata::{
    AccessToken, Issuer, ResourceUri, Scopes, Secret, UnixTime, client::ClientRegistrationResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use url::Url;
use zeroize::Zeroizing;

use super::StoreError;
use crate::{
    ResourceToken, StartUrl,
    registration::registered::Registered,
    token::{
        dpop::DpopBinding,
        resource_token::{Parts, Scheme},
    },
};

/// The version of the format. Entries of other versions are corrupted.
const VERSION: u32 = 1;
/// The size of the buffer for an entry: more than a directory accepts.
const MAX_SERIALIZED: usize = 512 * 1024;

/// The entry of a token. Its secrets are borrowed from a buffer that is erased.
#[derive(Serialize, Deserialize)]
struct TokenRecord<'a> {
    version: u32,
    origin: Cow<'a, str>,
    /// The start URL. Missing in entries of earlier versions.
    start: Option<Cow<'a, str>>,
    issuer: Cow<'a, str>,
    resource: Cow<'a, str>,
    /// Missing in entries of earlier versions.
    #[serde(default)]
    unbound: bool,
    client_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    access_token: Cow<'a, str>,
    #[serde(borrow)]
    refresh_token: Option<Cow<'a, str>>,
    asked: String,
    granted: Option<String>,
    obtained: u64,
    expires: Option<u64>,
    /// The key that the token is bound to, as PKCS #8.
    #[serde(borrow)]
    dpop_key: Option<Cow<'a, str>>,
}

/// The entry of a client.
#[derive(Serialize, Deserialize)]
struct ClientRecord<'a> {
    version: u32,
    issuer: Cow<'a, str>,
    redirect_uri: Option<Cow<'a, str>>,
    /// Missing in entries of earlier versions.
    #[serde(default)]
    asked: String,
    #[serde(borrow)]
    registration: &'a RawValue,
}

/// Serializes a token. Fails with [`StoreError::TooLarge`] when it is longer than
/// [`MAX_SERIALIZED`].
pub(super) fn serialize_token(token: &ResourceToken) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let parts = token.parts();
    let dpop_key = match &parts.scheme {
        Scheme::Bearer => None,
        Scheme::Dpop(binding) => Some(Zeroizing::new(
            URL_SAFE_NO_PAD.encode(binding.key().to_pkcs8()),
        )),
    };
    serialize(&TokenRecord {
        version: VERSION,
        origin: parts.origin.ascii_serialization().into(),
        start: parts
            .start
            .as_ref()
            .map(|start| start.url().as_str().into()),
        issuer: parts.issuer.as_str().into(),
        resource: parts.resource.as_str().into(),
        unbound: parts.is_unbound,
        client_id: parts.client_id.as_deref().map(Cow::from),
        access_token: parts.access_token.secret().into(),
        refresh_token: parts
            .refresh_token
            .as_ref()
            .map(|token| token.secret().into()),
        asked: parts.asked.to_string(),
        granted: parts.granted.as_ref().map(ToString::to_string),
        obtained: parts.obtained.as_millis(),
        expires: parts.expires.map(UnixTime::as_millis),
        dpop_key: dpop_key.as_ref().map(|key| Cow::from(key.as_str())),
    })
}

/// Whether the first entry is a token that was obtained later than the second one.
pub(super) fn is_newer(one: &[u8], other: &[u8]) -> bool {
    match (parse_token(one), parse_token(other)) {
        (Some(one), Some(other)) => one.obtained_at() > other.obtained_at(),
        _ => false,
    }
}

/// Parses a token. `None` if the entry is malformed, has another version, or would send the token
/// to another origin than its resource's.
pub(super) fn parse_token(bytes: &[u8]) -> Option<ResourceToken> {
    let record: TokenRecord<'_> = serde_json::from_slice(bytes).ok()?;
    if record.version != VERSION {
        return None;
    }
    let scheme = match record.dpop_key {
        None => Scheme::Bearer,
        Some(key) => {
            let key = Zeroizing::new(URL_SAFE_NO_PAD.decode(key.as_bytes()).ok()?);
            Scheme::Dpop(DpopBinding::new(DpopKey::from_pkcs8(&key).ok()?).into())
        }
    };
    let resource = ResourceUri::parse(&record.resource).ok()?;
    let origin = Url::parse(&record.origin).ok()?.origin();
    let start = record
        .start
        .as_deref()
        .map(StartUrl::parse)
        .transpose()
        .ok()?;
    // The token is sent only to its resource's origin, so an entry with another start URL is
    // invalid.
    let is_elsewhere = start
        .as_ref()
        .is_some_and(|start| start.url().origin() != origin);
    if is_elsewhere || origin != resource.url().origin() || record.access_token.is_empty() {
        return None;
    }
    Some(ResourceToken::from_parts(Parts {
        access_token: AccessToken::new(&*record.access_token),
        scheme,
        refresh_token: record.refresh_token.map(|token| Secret::new(&*token)),
        origin,
        start,
        issuer: Issuer::parse(&record.issuer).ok()?,
        resource,
        is_unbound: record.unbound,
        client_id: record.client_id.map(Cow::into_owned),
        asked: Scopes::parse(&record.asked).ok()?,
        granted: record
            .granted
            .as_deref()
            .map(Scopes::parse)
            .transpose()
            .ok()?,
        obtained: UnixTime::from_millis(record.obtained),
        expires: record.expires.map(UnixTime::from_millis),
    }))
}

/// Serializes a client. Fails with [`StoreError::TooLarge`] when it is longer than
/// [`MAX_SERIALIZED`].
pub(super) fn serialize_client(client: &Registered) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let registration = Zeroizing::new(client.response.to_json());
    let registration = serde_json::from_slice(&registration).map_err(|_| StoreError::TooLarge)?;
    serialize(&ClientRecord {
        version: VERSION,
        issuer: client.issuer.as_str().into(),
        redirect_uri: client.redirect_uri.as_deref().map(Cow::from),
        asked: client.asked.to_string(),
        registration,
    })
}

/// Parses a client. `None` if the entry is malformed or has another version.
pub(super) fn parse_client(bytes: &[u8]) -> Option<Registered> {
    let record: ClientRecord<'_> = serde_json::from_slice(bytes).ok()?;
    if record.version != VERSION {
        return None;
    }
    Some(Registered {
        issuer: Issuer::parse(&record.issuer).ok()?,
        redirect_uri: record.redirect_uri.map(Cow::into_owned),
        asked: Scopes::parse(&record.asked).ok()?,
        response: ClientRegistrationResponse::parse(record.registration.get().as_bytes()).ok()?,
    })
}

/// Serializes into a buffer that does not grow, because growing leaves copies of secrets behind.
fn serialize(record: &impl Serialize) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let mut bytes = Zeroizing::new(vec![0; MAX_SERIALIZED]);
    let mut rest = &mut bytes[..];
    serde_json::to_writer(&mut rest, record).map_err(|_| StoreError::TooLarge)?;
    rest.write_all(b"\n").map_err(|_| StoreError::TooLarge)?;
    let length = MAX_SERIALIZED - rest.len();
    bytes.truncate(length);
    Ok(bytes)
}
