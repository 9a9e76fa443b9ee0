//! `audiences` of the issuers: each names one resource.

use std::collections::HashMap;

use anyhow::{Context as _, ensure};
use portcullis_metadata::ResourceUri;
use portcullis_verifier::{ApplicationAudience, AudienceName, FurtherAudience};
use url::Url;

use super::{folded::folded, resources};
use crate::{
    Config, Diagnostics,
    file::{Audiences, Issuer},
    shown_url,
};

/// The endpoints of the configuration with their URLs, in their order.
pub(super) struct Endpoints<'a>(Vec<(&'a str, ResourceUri)>);

impl<'a> Endpoints<'a> {
    /// Leaves out invalid endpoints, which have an error elsewhere.
    pub(super) fn new(config: &'a Config, base_url: &Url) -> Self {
        let with_url = |endpoint: &'a str| {
            let url = resources::uri(base_url, endpoint).ok()?;
            Some((endpoint, url))
        };
        Self(
            config
                .resource
                .iter()
                .filter_map(|resource| with_url(&resource.endpoint))
                .collect(),
        )
    }

    fn get(&self, endpoint: &str) -> Option<&ResourceUri> {
        let mut all = self.0.iter();
        all.find_map(|(name, url)| (*name == endpoint).then_some(url))
    }

    /// Whether a text is the URL of a resource, apart from letter case and a slash at its end.
    pub(super) fn has_url(&self, text: &str) -> bool {
        let mut all = self.0.iter();
        all.any(|(_, url)| folded(url.as_str()) == folded(text))
    }

    /// Returns them as they are written in a message: `"/a", "/b"`.
    fn list(&self) -> String {
        let quoted: Vec<_> = self.0.iter().map(|(name, _)| format!("{name:?}")).collect();
        quoted.join(", ")
    }
}

/// Returns the audiences of an issuer, each with its resource. Adds an error for each that is
/// invalid or names no resource.
pub(super) fn of_issuer(
    issuer: &Issuer,
    endpoints: &Endpoints<'_>,
    errors: &mut Diagnostics<'_>,
) -> Vec<FurtherAudience> {
    let mut found = Vec::new();
    let mut add = |names: &[String], resource: &ResourceUri, errors: &mut Diagnostics<'_>| {
        for name in names {
            found.extend(
                errors
                    .take("audiences", parse(name, &issuer.issuer, resource))
                    .map(|name| FurtherAudience {
                        resource: resource.clone(),
                        name,
                    }),
            );
        }
    };
    match &issuer.audiences {
        Audiences::OfOne(names) => match &endpoints.0[..] {
            [(_, resource)] => add(names, resource, errors),
            [(first, _), _, ..] if !names.is_empty() => errors.add(
                "audiences",
                format!(
                    "there are {} resources, and each audience would count for all of them; write those of each endpoint: \
                     audiences = {{ {first:?} = […], … }}",
                    endpoints.0.len()
                ),
            ),
            _ => {}
        },
        Audiences::ByEndpoint(by_endpoint) => {
            for (endpoint, names) in by_endpoint {
                match endpoints.get(endpoint) {
                    Some(resource) => add(names, resource, errors),
                    None => errors.add(
                        "audiences",
                        format!(
                            "audiences has the endpoint {endpoint:?}, which no [[resource]] has; write one of {}",
                            endpoints.list()
                        ),
                    ),
                }
            }
        }
    }
    found
}

/// Adds an error for each audience that names two resources: a token for one of them would be
/// accepted at the other.
pub(super) fn check_distinct(
    issuers: &[Option<&[FurtherAudience]>],
    endpoints: &Endpoints<'_>,
    errors: &mut Diagnostics<'_>,
) {
    let own_urls = endpoints
        .0
        .iter()
        .map(|(_, url)| (folded(url.as_str()), url));
    let mut named: HashMap<String, &ResourceUri> = own_urls.collect();
    for (position, audiences) in issuers.iter().enumerate() {
        for audience in audiences.iter().copied().flatten() {
            let name = audience.name.as_str();
            let first = *named.entry(folded(name)).or_insert(&audience.resource);
            if *first != audience.resource {
                errors.add(
                    &format!("issuer[{position}].audiences"),
                    format!(
                        "audiences has {:?} for {}, and it also names {first}, so that a token for one would be accepted at the \
                         other; give each resource a name of its own",
                        shown_url(name),
                        audience.resource
                    ),
                );
            }
        }
    }
}

fn parse(text: &str, issuer: &str, resource: &ResourceUri) -> anyhow::Result<AudienceName> {
    if let Ok(name) = ApplicationAudience::parse(text) {
        return Ok(AudienceName::Application(name));
    }
    ensure!(
        text != "account" || !issuer.contains("/realms/"),
        "audiences has \"account\", which tokens for every client of the realm have by default; add an audience mapper for \
         \"{resource}\" in Keycloak (docs/use/keycloak.md), and remove audiences"
    );
    let url = ResourceUri::parse(text).with_context(|| {
        format!(
            "audiences has {:?}; each entry is an absolute URL of the same resource, or the issuer's own name for it: a UUID \
             or an api:// URI",
            shown_url(text)
        )
    })?;
    Ok(AudienceName::Url(url))
}
