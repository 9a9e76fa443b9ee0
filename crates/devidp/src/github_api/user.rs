//! [`GitHubUser`]: what the API says about a user.

use serde_json::{Map, Value, json};

use crate::{
    settings::DevIdpSettings,
    users::claims::{configured, number, of_user, plain_name},
};

/// A user as GitHub describes it. The claims of the settings replace what follows from the name.
pub(super) struct GitHubUser {
    claims: Map<String, Value>,
    login: String,
    id: Value,
    /// The public address, which is configured.
    public_email: Value,
}

impl GitHubUser {
    pub(super) fn new(settings: &DevIdpSettings, subject: &str) -> Self {
        let own = configured(settings, subject);
        let own = |name: &str| own.and_then(|claims| claims.get(name)).cloned();
        let login = own("login").and_then(|login| login.as_str().map(str::to_owned));
        Self {
            login: login.unwrap_or_else(|| plain_name(subject)),
            id: own("id").unwrap_or_else(|| json!(number(subject))),
            public_email: own("email").unwrap_or(Value::Null),
            claims: of_user(settings, subject),
        }
    }

    /// Returns the account of the user.
    pub(super) fn account(&self) -> Value {
        json!({
            "login": self.login,
            "id": self.id,
            "node_id": node_id(&self.id),
            "type": "User",
            "site_admin": false,
            "name": self.claims.get("name"),
            "email": self.public_email,
        })
    }

    pub(super) fn emails(&self) -> Vec<Value> {
        let is_verified = self.claims.get("email_verified");
        vec![json!({
            "email": self.claims.get("email"),
            "primary": true,
            "verified": is_verified,
            "visibility": "private",
        })]
    }

    pub(super) fn orgs(&self) -> Vec<Value> {
        self.names("orgs").map(organization).collect()
    }

    /// Returns the teams of the user. A team without an organization is left out.
    pub(super) fn teams(&self) -> Vec<Value> {
        let teams = self.names("teams").filter_map(|team| {
            let (org, slug) = team.split_once('/')?;
            Some(json!({
                "id": number(team),
                "node_id": node_id(&json!(number(team))),
                "name": slug,
                "slug": slug,
                "organization": organization(org),
            }))
        });
        teams.collect()
    }

    /// Returns the strings in a claim that is an array.
    fn names(&self, claim: &str) -> impl Iterator<Item = &str> {
        let names = self.claims.get(claim).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }
}

fn organization(login: &str) -> Value {
    let id = number(login);
    json!({ "login": login, "id": id, "node_id": node_id(&json!(id)), "description": "" })
}

fn node_id(id: &Value) -> String {
    format!("N_{id}")
}
