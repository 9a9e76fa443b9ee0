//! The resources for which the broker issues tokens.

use anyhow::bail;
use portcullis_broker::{BrokerResource, IntrospectionClient};
use portcullis_metadata::Scopes;

use crate::{
    Config, Diagnostics,
    file::{self, Authorization, BrokerIntrospection},
    nearest,
    plan::ResourcePlan,
    similar::intended_scope,
};

/// The resources for which the broker issues tokens, with their endpoints.
pub(super) struct BrokerResources<'a>(
    /// `None` if a resource is invalid. Nothing is compared with them then.
    Option<Vec<(&'a str, BrokerResource)>>,
);

impl<'a> BrokerResources<'a> {
    /// Returns the resources that accept the broker's tokens. Adds an error if there is none.
    pub(super) fn new(
        config: &'a Config,
        plans: Option<&[ResourcePlan]>,
        errors: &mut Diagnostics<'_>,
    ) -> Self {
        let Some(plans) = plans else {
            return Self(None);
        };
        let resources: Vec<_> = config
            .resource
            .iter()
            .zip(plans)
            .filter(|(_, plan)| plan.accepts_broker)
            .map(|(configured, plan)| (configured.endpoint.as_str(), resource(configured, plan)))
            .collect();
        let has_open = plans
            .iter()
            .any(|plan| plan.authorization == Authorization::None);
        // It has an error of its own, and its scopes are unknown here.
        if has_open {
            return Self(None);
        }
        if resources.is_empty() {
            errors.add(
                "",
                "no resource accepts the tokens of the broker; remove `issuers` from a [[resource]], or add base_url to it",
            );
        }
        Self(Some(resources))
    }

    pub(super) fn into_settings(self) -> Option<Vec<BrokerResource>> {
        let resources = self.0?.into_iter().map(|(_, resource)| resource);
        Some(resources.collect())
    }

    /// Returns the position of the resource with this endpoint.
    pub(super) fn default_resource(&self, endpoint: Option<&str>) -> anyhow::Result<Option<usize>> {
        let Some(endpoint) = endpoint else {
            return Ok(None);
        };
        let found = self.find("default_resource", endpoint)?;
        Ok(found.map(|(position, _)| position))
    }

    /// Fails if no resource has the scope. `key` is the key that lists it.
    pub(super) fn check_scope(&self, key: &str, scope: &str) -> anyhow::Result<()> {
        let Some(resources) = &self.0 else {
            return Ok(());
        };
        let known: Vec<&str> = resources
            .iter()
            .flat_map(|(_, resource)| resource.scopes.iter())
            .collect();
        if known.contains(&scope) {
            return Ok(());
        }
        let fix = intended_scope(scope, &known);
        bail!(
            "{key} has {scope:?}, and no resource has this scope; correct it, or add it to scopes_supported of a resource{fix}"
        )
    }

    /// Validates a resource server elsewhere.
    ///
    /// Adds an error for each invalid value, and returns `None` if there is one, or a resource is
    /// invalid.
    pub(super) fn introspection_client(
        &self,
        client: &BrokerIntrospection,
        errors: &mut Diagnostics<'_>,
    ) -> Option<IntrospectionClient> {
        if client.client_id.is_empty() {
            errors.add("client_id", "client_id is empty; write an identifier");
        }
        let secret = errors.take("client_secret", client.client_secret.read());
        let resource = errors.take("resource", self.find("resource", &client.resource));
        Some(IntrospectionClient {
            id: client.client_id.as_str().into(),
            secret: secret?,
            resource: resource??.1.uri.clone(),
        })
    }

    /// Returns the resource with this endpoint and its position; `None` if a resource is invalid.
    /// Fails if there is no such resource. `key` is the key with the endpoint.
    fn find(&self, key: &str, endpoint: &str) -> anyhow::Result<Option<(usize, &BrokerResource)>> {
        let Some(resources) = &self.0 else {
            return Ok(None);
        };
        let mut numbered = resources.iter().enumerate();
        if let Some((position, (_, resource))) = numbered.find(|(_, (own, _))| *own == endpoint) {
            return Ok(Some((position, resource)));
        }
        let known: Vec<&str> = resources.iter().map(|(endpoint, _)| *endpoint).collect();
        let fix = nearest(endpoint, &known);
        bail!(
            "{key} = {endpoint:?} is not the endpoint of a resource that accepts the broker's tokens; write one of {}{fix}",
            known.join(", ")
        )
    }
}

fn resource(configured: &file::Resource, plan: &ResourcePlan) -> BrokerResource {
    let supported = scopes(&configured.scopes_supported);
    let implied = configured
        .scope_implies
        .iter()
        .flat_map(|(broad, narrow)| [broad].into_iter().chain(narrow));
    let implied = scopes(implied);
    let of_rules = plan.rules.iter().map(|rule| &rule.scopes);
    let of_routes = plan.routes.iter().map(|route| &route.scopes);
    let all = of_rules
        .chain(of_routes)
        .chain([&plan.required_scopes, &supported, &implied])
        .fold(Scopes::empty(), |all, scopes| all.union(scopes));
    BrokerResource {
        uri: plan.metadata.resource.clone(),
        name: plan.metadata.resource_name.as_deref().map(Box::from),
        scopes: all,
        default_scopes: if plan.required_scopes.is_empty() {
            supported
        } else {
            plan.required_scopes.clone()
        },
    }
}

/// Returns the set of names that were validated.
fn scopes<'a>(names: impl IntoIterator<Item = &'a String>) -> Scopes {
    let names = names.into_iter().map(String::as_str);
    Scopes::from_names(names).unwrap_or_default()
}
