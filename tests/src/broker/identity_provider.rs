//! [`BrokerIdp`]: the development authorization server as an identity provider.

use portcullis_devidp::{
    ClientAuthentication, ClientSettings, Control, DevIdp, DevIdpSettings, GrantType, Provider,
    UserSettings,
};
use portcullis_metadata::Secret;
use serde_json::{Map, Value, json};

use crate::Scratch;

/// A provider that the development server imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// An OpenID provider without peculiarities.
    Oidc,
    /// Microsoft Entra ID.
    Entra,
    /// Google.
    Google,
    /// GitHub, with an OAuth app.
    GitHub,
    /// GitHub, with a GitHub App.
    GitHubApp,
    /// Okta.
    Okta,
    /// Auth0.
    Auth0,
    /// Keycloak.
    Keycloak,
    /// Amazon Cognito.
    Cognito,
}

impl ProviderKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Oidc,
        Self::Entra,
        Self::Google,
        Self::GitHub,
        Self::GitHubApp,
        Self::Okta,
        Self::Auth0,
        Self::Keycloak,
        Self::Cognito,
    ];

    /// Returns `kind` in the configuration, which is also the name of the provider.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oidc => "oidc",
            Self::Entra => "entra",
            Self::Google => "google",
            Self::GitHub | Self::GitHubApp => "github",
            Self::Okta => "okta",
            Self::Auth0 => "auth0",
            Self::Keycloak => "keycloak",
            Self::Cognito => "cognito",
        }
    }

    fn imitated(self) -> Option<Provider> {
        Some(match self {
            Self::Oidc => return None,
            Self::Entra => Provider::Entra,
            Self::Google => Provider::Google,
            Self::GitHub => Provider::GitHub,
            Self::GitHubApp => Provider::GitHubApp,
            Self::Okta => Provider::Okta,
            Self::Auth0 => Provider::Auth0,
            Self::Keycloak => Provider::Keycloak,
            Self::Cognito => Provider::Cognito,
        })
    }

    /// Returns the method that the provider's documentation shows. The development server accepts
    /// no other one.
    fn authentication(self, secret: Secret) -> ClientAuthentication {
        match self {
            Self::Entra | Self::GitHub | Self::GitHubApp => {
                ClientAuthentication::SecretPost(secret)
            }
            _ => ClientAuthentication::SecretBasic(secret),
        }
    }

    /// Returns the `[[broker.provider]]` of the configuration, for the application
    /// [`BrokerIdp::CLIENT`].
    pub fn table(self, issuer: &str, secret_file: &str) -> String {
        let lines = match self {
            Self::Entra => "tenant = \"aaaabbbb-0000-cccc-1111-dddd2222eeee\"",
            Self::Google => "allow = [{ claim = \"hd\", one_of = [\"corp.example\"] }]",
            Self::GitHub | Self::GitHubApp => {
                "allow = [{ claim = \"id\", one_of = [\"1000\", \"1001\"] }]"
            }
            _ => "",
        };
        format!(
            "[[broker.provider]]\nkind = \"{kind}\"\nissuer = \"{issuer}\"\nclient_id = \"{client}\"\n\
             client_secret = {{ file = \"{secret_file}\" }}\n{lines}\n",
            kind = self.name(),
            client = BrokerIdp::CLIENT,
        )
    }

    /// Returns the claims of the users, which the rules of [`table`](Self::table) require.
    fn claims(self, user: &str, number: usize) -> Map<String, Value> {
        let claims = match self {
            Self::GitHub | Self::GitHubApp => {
                json!({ "id": 1000 + number, "login": user, "orgs": ["corp"] })
            }
            _ => json!({ "email": format!("{user}@corp.example") }),
        };
        claims.as_object().cloned().unwrap_or_default()
    }
}

/// A running development server at which a broker is registered. The users `alice` and `bob` may
/// use the broker.
pub struct BrokerIdp {
    /// What it imitates.
    pub kind: ProviderKind,
    /// Removes users, ends sessions and injects faults.
    pub control: Control,
    issuer: String,
    secret: Scratch,
}

impl BrokerIdp {
    /// The identifier of the application.
    pub const CLIENT: &str = "portcullis";
    /// The secret of the application.
    pub const SECRET: &str = "secret-of-the-application";

    /// Starts a provider for the broker with this base URL.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start(kind: ProviderKind, broker: &str) -> Self {
        let client = ClientSettings {
            name: Some("Portcullis".to_owned()),
            redirect_uris: vec![format!("{broker}/oauth/callback/{}", kind.name())],
            grant_types: vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
            backchannel_logout_uri: Some(format!("{broker}/oauth/logout/{}", kind.name())),
            authentication: kind.authentication(Secret::new(Self::SECRET)),
            ..ClientSettings::with_secret(Self::CLIENT, Secret::new(Self::SECRET))
        };
        let users = ["alice", "bob"].into_iter().enumerate();
        let users = users.map(|(number, name)| UserSettings {
            claims: kind.claims(name, number),
            ..UserSettings::new(name)
        });
        let idp = DevIdp::bind(DevIdpSettings {
            provider: kind.imitated(),
            clients: vec![client],
            users: users.collect(),
            ..DevIdpSettings::default()
        })
        .await
        .expect("it binds");
        let started = Self {
            kind,
            control: idp.control(),
            issuer: idp.issuer().as_str().to_owned(),
            secret: Scratch::file("provider-secret", Self::SECRET),
        };
        tokio::spawn(idp.serve(std::future::pending()));
        started
    }

    /// Returns the `[[broker.provider]]` of the configuration.
    pub fn table(&self) -> String {
        let issuer = match self.kind {
            ProviderKind::GitHub | ProviderKind::GitHubApp => {
                self.issuer.trim_end_matches("/login/oauth")
            }
            _ => &self.issuer,
        };
        self.kind.table(issuer, self.secret.as_str())
    }
}
