//! [`Tenant`]: an issuer of ID tokens, and the tenants of Entra.

use std::sync::Arc;

use portcullis_discovery::Fetch;
use portcullis_metadata::{Clock, Issuer, syntax::is_uuid};
use portcullis_verifier::{IssuerSettings, TrustedIssuer};
use tokio::runtime::Handle;
use url::Url;

use crate::{
    ProviderSettings, ProviderSettingsError,
    kinds::{Identifier, Protocol},
};

/// The first path segment of endpoints for users of any organization.
const ORGANIZATIONS: &str = "organizations";

/// An issuer whose ID tokens are accepted.
pub(crate) struct Tenant {
    /// The tenant, which `tid` must name. `None` for other kinds than Entra.
    pub(crate) id: Option<Box<str>>,
    pub(crate) issuer: Arc<TrustedIssuer>,
}

/// Creates the issuers of a provider: one, or one for each tenant.
pub(crate) fn tenants(
    settings: &ProviderSettings,
    fetch: &Arc<dyn Fetch>,
    clock: &Arc<dyn Clock>,
    control: &Handle,
) -> Result<Vec<Tenant>, ProviderSettingsError> {
    let create = |(id, issuer)| {
        let issuer = TrustedIssuer::new(
            issuer_settings(settings, issuer),
            Arc::clone(fetch),
            Arc::clone(clock),
            control.clone(),
        )?;
        Ok(Tenant { id, issuer })
    };
    issuers(settings)?.into_iter().map(create).collect()
}

impl ProviderSettings {
    /// Returns how the ID tokens of the provider are verified: the settings of its issuer, or of
    /// one issuer for each tenant. None for GitHub, which has no ID tokens.
    ///
    /// # Errors
    /// Fails if the issuer or the tenants cannot be used.
    pub fn id_token_issuers(&self) -> Result<Vec<IssuerSettings>, ProviderSettingsError> {
        if self.kind.profile().protocol == Protocol::GitHub {
            return Ok(Vec::new());
        }
        let settings = |(_, issuer)| issuer_settings(self, issuer);
        Ok(issuers(self)?.into_iter().map(settings).collect())
    }
}

fn issuer_settings(settings: &ProviderSettings, issuer: Issuer) -> IssuerSettings {
    let mut trusted = IssuerSettings::new(issuer);
    trusted.algorithms = settings.kind.profile().algorithms;
    trusted.url_policy = settings.url_policy;
    trusted
}

/// An issuer, and its tenant if the kind of provider has tenants.
type TenantIssuer = (Option<Box<str>>, Issuer);

/// Returns the issuers of an OpenID provider.
fn issuers(settings: &ProviderSettings) -> Result<Vec<TenantIssuer>, ProviderSettingsError> {
    if settings.kind.profile().identifier != Identifier::TenantAndObject {
        if !settings.tenants.is_empty() {
            return Err(ProviderSettingsError::TenantsNotSupported);
        }
        return Ok(vec![(None, settings.issuer.clone())]);
    }
    let own = issuer_tenant(&settings.issuer).ok_or(ProviderSettingsError::EntraIssuer)?;
    if settings.tenants.is_empty() {
        return Ok(vec![(Some(own), settings.issuer.clone())]);
    }
    if settings.tenants.len() > ProviderSettings::MAX_TENANTS {
        return Err(ProviderSettingsError::TooManyTenants);
    }
    if settings.tenants.iter().any(|tenant| !is_uuid(tenant)) {
        return Err(ProviderSettingsError::Tenant);
    }
    if !settings.tenants.contains(&own) {
        return Err(ProviderSettingsError::IssuerTenantNotListed);
    }
    settings
        .tenants
        .iter()
        .map(|tenant| {
            let issuer = issuer_of(&settings.issuer, &own, tenant)
                .ok_or(ProviderSettingsError::EntraIssuer)?;
            Ok((Some(tenant.clone()), issuer))
        })
        .collect()
}

/// Returns the tenant of an issuer of Entra: its first path segment, if that is a UUID.
pub(crate) fn issuer_tenant(issuer: &Issuer) -> Option<Box<str>> {
    let tenant = issuer.url().path_segments()?.next()?;
    is_uuid(tenant).then(|| tenant.into())
}

/// Returns the issuer of another tenant.
fn issuer_of(issuer: &Issuer, own: &str, tenant: &str) -> Option<Issuer> {
    let (before, after) = issuer.as_str().split_once(&format!("/{own}/"))?;
    Issuer::parse(&format!("{before}/{tenant}/{after}")).ok()
}

/// Returns the endpoint for users of any organization that corresponds to that of a tenant.
pub(crate) fn for_organizations(mut endpoint: Url, tenant: &str) -> Url {
    let path = endpoint.path();
    let rest = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(tenant))
        .filter(|rest| rest.starts_with('/'));
    if let Some(rest) = rest {
        let path = format!("/{ORGANIZATIONS}{rest}");
        endpoint.set_path(&path);
    }
    endpoint
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";

    #[test]
    fn only_the_first_segment_is_replaced() {
        for (url, expected) in [
            (
                format!("https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token"),
                "https://login.microsoftonline.com/organizations/oauth2/v2.0/token".to_owned(),
            ),
            (
                format!("https://login.example/a/{TENANT}/token"),
                format!("https://login.example/a/{TENANT}/token"),
            ),
            (
                format!("https://login.example/{TENANT}0/token"),
                format!("https://login.example/{TENANT}0/token"),
            ),
        ] {
            let url = Url::parse(&url).unwrap();
            assert_eq!(for_organizations(url, TENANT).as_str(), expected);
        }
    }

    #[test]
    fn the_tenant_of_an_issuer_is_a_uuid() {
        let tenant = |issuer: &str| issuer_tenant(&Issuer::parse(issuer).unwrap());
        let issuer = format!("https://login.microsoftonline.com/{TENANT}/v2.0");
        assert_eq!(tenant(&issuer).as_deref(), Some(TENANT));
        for other in [
            "common",
            "organizations",
            "consumers",
            "contoso.onmicrosoft.com",
        ] {
            let issuer = format!("https://login.microsoftonline.com/{other}/v2.0");
            assert_eq!(tenant(&issuer), None);
        }
        assert_eq!(tenant("https://login.microsoftonline.com"), None);
    }
}
