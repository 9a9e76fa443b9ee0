//! [`Admin`]: Keycloak's admin API.

use std::time::Duration;

use anyhow::Context as _;
use http::{HeaderValue, Method, StatusCode, header};
use portcullis_discovery::{Fetch as _, FetchRequest, HttpFetch, UrlPolicy};
use serde_json::{Map, Value, json};
use url::Url;

use crate::expect;

/// The creation of a realm can take many seconds on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const KEY_PROVIDER: &str = "org.keycloak.keys.KeyProvider";

/// The administrator.
pub(super) struct Admin {
    base: Url,
    fetch: HttpFetch,
}

impl Admin {
    pub(super) fn new(base: Url) -> anyhow::Result<Self> {
        Ok(Self {
            base,
            fetch: HttpFetch::new(Default::default())?,
        })
    }

    /// Creates a realm from its JSON.
    pub(super) async fn create_realm(&self, realm: &str) -> anyhow::Result<()> {
        self.send(
            Method::POST,
            "admin/realms",
            Some(serde_json::from_str(realm)?),
        )
        .await
        .map(drop)
    }

    /// Enables or disables a user.
    pub(super) async fn enable_user(&self, name: &str, enabled: bool) -> anyhow::Result<()> {
        let path = format!("admin/realms/mcp/users/{}", self.user(name).await?);
        self.send(Method::PUT, &path, Some(json!({ "enabled": enabled })))
            .await
            .map(drop)
    }

    /// Ends all sessions of a user.
    pub(super) async fn log_out(&self, name: &str) -> anyhow::Result<()> {
        let path = format!("admin/realms/mcp/users/{}/logout", self.user(name).await?);
        self.send(Method::POST, &path, None).await.map(drop)
    }

    /// Ends the sessions of a user's offline tokens for a client.
    pub(super) async fn end_offline_sessions(
        &self,
        name: &str,
        client: &str,
    ) -> anyhow::Result<()> {
        let user = self.user(name).await?;
        let client = self.client(client).await?;
        let client = client["id"].as_str().unwrap_or_default();
        let path = format!("admin/realms/mcp/users/{user}/offline-sessions/{client}");
        let sessions = self.send(Method::GET, &path, None).await?;
        let ids = sessions.as_array().into_iter().flatten();
        let ids: Vec<_> = ids.filter_map(|session| session["id"].as_str()).collect();
        expect::that(!ids.is_empty(), "offline sessions", "one or more", &ids)?;
        for id in ids {
            let path = format!("admin/realms/mcp/sessions/{id}?isOffline=true");
            self.send(Method::DELETE, &path, None).await?;
        }
        Ok(())
    }

    /// Sets the lifetime of new access tokens of the realm, in seconds.
    pub(super) async fn set_token_lifetime(&self, seconds: u32) -> anyhow::Result<()> {
        self.send(
            Method::PUT,
            "admin/realms/mcp",
            Some(json!({ "accessTokenLifespan": seconds })),
        )
        .await
        .map(drop)
    }

    /// Adds an RSA key, which signs new tokens if its priority is the highest.
    pub(super) async fn add_key(&self, name: &str, priority: u32) -> anyhow::Result<()> {
        let key = json!({
            "name": name, "providerId": "rsa-generated", "providerType": KEY_PROVIDER,
            "config": { "priority": [priority.to_string()], "algorithm": ["RS256"] },
        });
        self.send(Method::POST, "admin/realms/mcp/components", Some(key))
            .await
            .map(drop)
    }

    /// Disables the realm's first key, which removes it from the key set.
    pub(super) async fn withdraw_first_key(&self) -> anyhow::Result<()> {
        let path = format!("admin/realms/mcp/components?type={KEY_PROVIDER}");
        let keys = self.send(Method::GET, &path, None).await?;
        let mut keys = keys.as_array().into_iter().flatten();
        let key =
            keys.find(|key| key["providerId"] == "rsa-generated" && key["name"] == "rsa-generated");
        let mut key = key
            .cloned()
            .context("expected the realm's first key, got none")?;
        key["config"]["enabled"] = json!(["false"]);
        let path = format!(
            "admin/realms/mcp/components/{}",
            key["id"].as_str().unwrap_or_default()
        );
        self.send(Method::PUT, &path, Some(key)).await.map(drop)
    }

    /// Sets attributes of a client.
    pub(super) async fn set_attributes(
        &self,
        client: &str,
        attributes: Map<String, Value>,
    ) -> anyhow::Result<()> {
        let mut found = self.client(client).await?;
        let id = found["id"].as_str().unwrap_or_default();
        let path = format!("admin/realms/mcp/clients/{id}");
        found["attributes"]
            .as_object_mut()
            .context("a client without attributes")?
            .extend(attributes);
        self.send(Method::PUT, &path, Some(found)).await.map(drop)
    }

    /// Adds an attribute of users that only administrators see and change.
    pub(super) async fn add_user_attribute(&self, name: &str) -> anyhow::Result<()> {
        const PATH: &str = "admin/realms/mcp/users/profile";
        let mut profile = self.send(Method::GET, PATH, None).await?;
        let attributes = profile["attributes"]
            .as_array_mut()
            .context("expected a user profile, got none")?;
        attributes
            .push(json!({ "name": name, "permissions": { "view": ["admin"], "edit": ["admin"] } }));
        self.send(Method::PUT, PATH, Some(profile)).await.map(drop)
    }

    /// Adds an identity provider of the realm.
    pub(super) async fn add_identity_provider(
        &self,
        alias: &str,
        provider: &str,
        config: Value,
    ) -> anyhow::Result<()> {
        let instance = json!({
            "alias": alias, "providerId": provider, "enabled": true, "trustEmail": true, "config": config,
        });
        self.send(
            Method::POST,
            "admin/realms/mcp/identity-provider/instances",
            Some(instance),
        )
        .await
        .map(drop)
    }

    pub(super) async fn add_identity_provider_mapper(
        &self,
        alias: &str,
        mapper: &str,
        config: Value,
    ) -> anyhow::Result<()> {
        let path = format!("admin/realms/mcp/identity-provider/instances/{alias}/mappers");
        let mapper = json!({
            "name": mapper, "identityProviderAlias": alias, "identityProviderMapper": mapper, "config": config,
        });
        self.send(Method::POST, &path, Some(mapper)).await.map(drop)
    }

    /// Adds a mapper to a client scope.
    pub(super) async fn add_scope_mapper(
        &self,
        scope: &str,
        mapper: &str,
        config: Value,
    ) -> anyhow::Result<()> {
        let scopes = self
            .send(Method::GET, "admin/realms/mcp/client-scopes", None)
            .await?;
        let found = scopes
            .as_array()
            .into_iter()
            .flatten()
            .find(|found| found["name"] == scope);
        let id = found
            .and_then(|found| found["id"].as_str())
            .with_context(|| format!("no scope {scope}"))?;
        let path = format!("admin/realms/mcp/client-scopes/{id}/protocol-mappers/models");
        let mapper = json!({ "name": mapper, "protocol": "openid-connect", "protocolMapper": mapper, "config": config });
        self.send(Method::POST, &path, Some(mapper)).await.map(drop)
    }

    /// Returns the representation of a client.
    async fn client(&self, id: &str) -> anyhow::Result<Value> {
        let path = format!("admin/realms/mcp/clients?clientId={id}");
        let mut found = self.send(Method::GET, &path, None).await?;
        let clients = found.as_array_mut().and_then(Vec::pop);
        clients.with_context(|| format!("no client {id}"))
    }

    async fn user(&self, name: &str) -> anyhow::Result<String> {
        let found = self
            .send(
                Method::GET,
                &format!("admin/realms/mcp/users?username={name}&exact=true"),
                None,
            )
            .await?;
        found[0]["id"]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("no user {name}"))
    }

    /// Sends a request to the admin API.
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let what = format!("{method} {}", path.split('?').next().unwrap_or(path));
        let mut request = FetchRequest::new(method, self.base.join(path)?, UrlPolicy::Operator)
            .header(
                header::AUTHORIZATION,
                HeaderValue::from_str(&format!("Bearer {}", self.token().await?))?,
            );
        request.timeout = TIMEOUT;
        if let Some(body) = body {
            request = request.header(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            request.body = serde_json::to_vec(&body)?.into();
        }
        let response = self.fetch.fetch(request).await?;
        let text = String::from_utf8_lossy(&response.body);
        expect::that(
            response.status.is_success(),
            &what,
            "a status of 2xx",
            format_args!("{}: {text}", response.status),
        )?;
        Ok(serde_json::from_slice(&response.body).unwrap_or_default())
    }

    /// Obtains a new token, because tokens expire after a minute.
    async fn token(&self) -> anyhow::Result<String> {
        let fields = [
            ("grant_type", "password"),
            ("client_id", "admin-cli"),
            ("username", "admin"),
            ("password", "admin-password"),
        ];
        let url = self
            .base
            .join("realms/master/protocol/openid-connect/token")?;
        let mut request = FetchRequest::post_form(url, fields, UrlPolicy::Operator);
        request.timeout = TIMEOUT;
        let response = self.fetch.fetch(request).await?;
        let response = expect::json("the administrator's token", StatusCode::OK, &response)?;
        response["access_token"]
            .as_str()
            .map(str::to_owned)
            .context("expected a token for the administrator, got none")
    }
}
