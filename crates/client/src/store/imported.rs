//! [`ImportedToken`]: a token that another program obtained, and its import into the store.

use portcullis_metadata::{
    AccessToken, Issuer, ResourceUri, Scopes, Secret, UnixTime, client::ClientRegistrationResponse,
};
use url::Url;

use super::{CredentialStore, StoreError};
use crate::{
    KnownIssuer, ResourceToken, StartUrl,
    registration::registered::Registered,
    token::resource_token::{Parts, Scheme},
};

/// A bearer token that another program obtained, and the authorization server that issued it.
///
/// The issuer must come from the other program's own record of the token. Discovery could return
/// another issuer now, which would then receive the refresh token.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportedToken {
    /// The URL that the token was obtained for.
    pub start: StartUrl,
    /// The resource that the token was requested for (RFC 8707), or is used for if it was requested
    /// without one.
    pub resource: ResourceUri,
    /// Whether it was requested without the parameter `resource`. It is then refreshed without it,
    /// and the same sign-in again needs no further consent. Default: false.
    pub is_unbound: bool,
    /// The authorization server that issued it.
    pub issuer: Issuer,
    /// The client that it was issued to.
    pub client_id: String,
    /// The token.
    pub access_token: AccessToken,
    /// The refresh token. Default: none.
    pub refresh_token: Option<Secret>,
    /// The scopes that were requested. Default: none.
    pub requested: Scopes,
    /// The scopes that were granted. Default: unknown.
    pub granted: Option<Scopes>,
    /// When it was stored by the other program. Default: the epoch.
    pub obtained: UnixTime,
    /// When it expires. Default: unknown.
    pub expires: Option<UnixTime>,
    /// The redirect URI and the registration of the client. Default: none, for a client of the
    /// settings.
    pub registration: Option<(Url, ClientRegistrationResponse)>,
}

impl ImportedToken {
    /// Creates a token for the resource, without a refresh token, with unknown scopes and an
    /// unknown expiry.
    pub fn new(
        start: StartUrl,
        resource: ResourceUri,
        issuer: Issuer,
        client_id: String,
        access_token: AccessToken,
    ) -> Self {
        Self {
            start,
            resource,
            is_unbound: false,
            issuer,
            client_id,
            access_token,
            refresh_token: None,
            requested: Scopes::empty(),
            granted: None,
            obtained: UnixTime::from_secs(0),
            expires: None,
            registration: None,
        }
    }
}

impl CredentialStore {
    /// Stores a token of another program, unless this store already has one for the same URL.
    /// Returns whether the token was stored. The caller must delete the other program's copy: a
    /// refresh token that rotates works for one owner.
    ///
    /// No request is sent. The token is not validated.
    ///
    /// # Errors
    /// Fails when the store cannot be read or written.
    pub async fn import(&self, imported: ImportedToken) -> Result<bool, StoreError> {
        let ImportedToken {
            start,
            issuer,
            client_id,
            registration,
            is_unbound,
            ..
        } = imported;
        let token = ResourceToken::from_parts(Parts {
            access_token: imported.access_token,
            scheme: Scheme::Bearer,
            refresh_token: imported.refresh_token,
            origin: start.url().origin(),
            start: Some(start.clone()),
            issuer: issuer.clone(),
            resource: imported.resource,
            is_unbound,
            client_id: Some(client_id),
            asked: imported.requested.clone(),
            granted: imported.granted,
            obtained: imported.obtained,
            expires: imported.expires,
        });
        let entry = self.lock_token(&token).await?;
        if !self.tokens(&start)?.is_empty() {
            return Ok(false);
        }
        if let Some((redirect, response)) = registration {
            // As for a sign-in: a client that requests tokens without `resource` is for one URL
            // only.
            let omits_resource =
                is_unbound || KnownIssuer::find(&issuer).is_some_and(|known| known.omits_resource);
            let client = self
                .lock_client(&issuer, &redirect, omits_resource.then_some(start.url()))
                .await?;
            let redirect_uri = Some(redirect.as_str().to_owned());
            client.write(&Registered {
                issuer,
                redirect_uri,
                asked: imported.requested,
                response,
            })?;
        }
        entry.write(&token)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ISSUER, RESOURCE, ScratchDirectory};

    fn imported(issuer: &str, access_token: &str) -> ImportedToken {
        let start = StartUrl::parse(RESOURCE).unwrap();
        let resource = ResourceUri::parse(RESOURCE).unwrap();
        let mut token = ImportedToken::new(
            start,
            resource,
            Issuer::parse(issuer).unwrap(),
            "client".into(),
            AccessToken::new(access_token),
        );
        token.refresh_token = Some(Secret::new("refresh"));
        let response =
            ClientRegistrationResponse::parse(br#"{"client_id":"client","client_secret":"hush"}"#)
                .unwrap();
        token.registration = Some((
            Url::parse("http://localhost:9696/oauth/callback").unwrap(),
            response,
        ));
        token
    }

    /// I7, H3: an imported token is stored with its issuer and its client, and replaces no stored
    /// token.
    #[tokio::test]
    async fn an_imported_token_replaces_none() {
        let scratch = ScratchDirectory::new();
        let store = CredentialStore::in_directory(scratch.path());
        assert!(store.import(imported(ISSUER, "first")).await.unwrap());
        assert!(!store.import(imported(ISSUER, "second")).await.unwrap());
        assert!(
            !store
                .import(imported("https://other.example.com", "third"))
                .await
                .unwrap()
        );
        let tokens = store.tokens(&StartUrl::parse(RESOURCE).unwrap()).unwrap();
        assert_eq!(tokens.len(), 1);
        assert_eq!(tokens[0].access_token().secret(), "first");
        assert_eq!(tokens[0].refresh_token().unwrap().secret(), "refresh");
        let issuer = Issuer::parse(ISSUER).unwrap();
        assert!(store.client(&issuer, "client").unwrap().is_some());
        assert!(store.client(&issuer, "other").unwrap().is_none());
        assert!(
            store
                .tokens(&StartUrl::parse("https://mcp.example.com/elsewhere").unwrap())
                .unwrap()
                .is_empty()
        );
    }
}
