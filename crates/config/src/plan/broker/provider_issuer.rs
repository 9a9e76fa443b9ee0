//! The issuer and the tenants of a provider, which depend on its kind.

use anyhow::{Context as _, bail, ensure};
use portcullis_identity_provider::{ProviderKind, ProviderSettings};
use portcullis_metadata::{
    Issuer,
    syntax::{is_loopback, is_uuid},
};

use crate::{
    Diagnostics,
    file::BrokerProvider,
    plan::{
        entra,
        issuers::{check_https, check_text},
        keycloak_pages, known_issuers,
        url_fix::ascii_form,
    },
    shown_url,
};

/// The tenant of Entra ID that all personal accounts of Microsoft have.
const PERSONAL_ACCOUNTS: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";

pub(super) const GOOGLE: &str = "https://accounts.google.com";
const GITHUB: &str = "https://github.com";

/// Where the users of a provider are.
pub(super) struct Source {
    pub(super) issuer: Issuer,
    /// Empty unless there are several.
    pub(super) tenants: Vec<Box<str>>,
}

/// Validates the keys that depend on the kind. Adds an error for each invalid one, and returns
/// `None` if there is one.
pub(super) fn plan(provider: &BrokerProvider, errors: &mut Diagnostics<'_>) -> Option<Source> {
    let kind = ProviderKind::from(provider.kind);
    if kind == ProviderKind::Entra {
        return of_entra(provider, errors);
    }
    let keys = [
        ("tenant", provider.tenant.is_some()),
        ("tenants", provider.tenants.is_some()),
    ];
    let mut is_valid = true;
    for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
        is_valid = false;
        errors.add(
            key,
            format!("{key} is for kind = \"entra\" only; remove it"),
        );
    }
    let issuer = match kind {
        ProviderKind::Google => of_google(provider.issuer.as_deref()),
        ProviderKind::GitHub => of_github(provider.issuer.as_deref()),
        _ => of_others(kind, provider.issuer.as_deref()),
    };
    let issuer = errors.take("issuer", issuer)?;
    is_valid.then_some(Source {
        issuer,
        tenants: Vec::new(),
    })
}

fn of_entra(provider: &BrokerProvider, errors: &mut Diagnostics<'_>) -> Option<Source> {
    let tenants = match (&provider.tenant, &provider.tenants) {
        (Some(tenant), None) => errors
            .take("tenant", tenant_id("tenant", tenant))
            .map(|id| vec![id]),
        (None, Some(tenants)) => self::tenants(tenants, errors),
        (Some(_), Some(_)) => {
            errors.add("tenants", "tenant and tenants are both set; remove one");
            None
        }
        (None, None) => {
            errors.add(
                "tenant",
                "tenant is missing; write the ID of your tenant, which the overview of Entra ID shows: tenant = \
                 \"aaaabbbb-0000-cccc-1111-dddd2222eeee\"",
            );
            None
        }
    }?;
    let first = tenants.first()?;
    let issuer = errors.take("issuer", entra_issuer(provider.issuer.as_deref(), first))?;
    Some(Source {
        issuer,
        tenants: if tenants.len() > 1 {
            tenants
        } else {
            Vec::new()
        },
    })
}

fn tenants(configured: &[String], errors: &mut Diagnostics<'_>) -> Option<Vec<Box<str>>> {
    let tenants = errors.take_all(
        "tenants",
        configured.iter().map(|tenant| tenant_id("tenants", tenant)),
    )?;
    errors.take("tenants", check_tenants(&tenants))?;
    Some(tenants)
}

fn check_tenants(tenants: &[Box<str>]) -> anyhow::Result<()> {
    ensure!(
        !tenants.is_empty(),
        "tenants = [] lists no tenant, so that no user can sign in; list the IDs of your tenants"
    );
    ensure!(
        tenants.len() <= ProviderSettings::MAX_TENANTS,
        "tenants has {} entries; remove all but {}",
        tenants.len(),
        ProviderSettings::MAX_TENANTS
    );
    for (position, tenant) in tenants.iter().enumerate() {
        ensure!(
            !tenants[..position].contains(tenant),
            "tenants has {tenant:?} twice; remove one"
        );
    }
    Ok(())
}

/// Parses the identifier of a tenant, and returns it in lower case as in Entra's tokens.
fn tenant_id(key: &str, text: &str) -> anyhow::Result<Box<str>> {
    let id = text.to_ascii_lowercase();
    if entra::SHARED_TENANTS.contains(&&*id) || id == PERSONAL_ACCOUNTS {
        bail!(
            "{key} has {text:?}, with which anyone with an account at Microsoft could sign in; write the ID of your tenant, \
             or list several in tenants"
        );
    }
    ensure!(
        is_uuid(&id),
        "{key} has {text:?}, which is not the ID of a tenant; write the UUID that the overview of Entra ID shows, which is \
         also in https://login.microsoftonline.com/<domain>/v2.0/.well-known/openid-configuration"
    );
    Ok(id.into())
}

/// Returns the issuer of a tenant. An issuer is configured for a national cloud, or on loopback for
/// an imitation, whose path also begins with the tenant.
fn entra_issuer(configured: Option<&str>, tenant: &str) -> anyhow::Result<Issuer> {
    let Some(text) = configured else {
        return Ok(Issuer::parse(&entra::global_issuer(tenant))?);
    };
    let issuer = parse(text)?;
    let is_imitation =
        is_loopback(issuer.url()) && issuer.url().path().starts_with(&format!("/{tenant}/"));
    if is_imitation || entra::is_issuer_of(text, tenant) {
        return Ok(issuer);
    }
    let fix = match entra::in_national_cloud(text) {
        Some(_) => format!("write {:?}", entra::issuer_in_cloud_of(text, tenant)),
        None => format!(
            "remove it, or write that of another cloud, such as \"https://login.microsoftonline.us/{tenant}/v2.0\""
        ),
    };
    bail!(
        "issuer = {:?} is not that of the tenant {tenant} in a cloud of Entra ID; {fix}",
        shown_url(text)
    )
}

fn of_google(configured: Option<&str>) -> anyhow::Result<Issuer> {
    let issuer = parse(configured.unwrap_or(GOOGLE))?;
    ensure!(
        issuer.as_str() == GOOGLE || is_loopback(issuer.url()),
        "issuer = {:?} is not that of Google; remove it",
        shown_url(issuer.as_str())
    );
    Ok(issuer)
}

fn of_github(configured: Option<&str>) -> anyhow::Result<Issuer> {
    let issuer = parse(configured.unwrap_or(GITHUB))?;
    let is_other_name = |issuer: &Issuer| {
        known_issuers::broker_kind(issuer.url()).is_some() && issuer.as_str() != GITHUB
    };
    ensure!(
        issuer.url().path() == "/" && !issuer.as_str().ends_with('/') && !is_other_name(&issuer),
        "issuer = {:?} is not the URL of a GitHub Enterprise Server; write it without a path, such as \
         \"https://github.example.com\", or remove it for github.com",
        shown_url(issuer.as_str())
    );
    Ok(issuer)
}

fn of_others(kind: ProviderKind, configured: Option<&str>) -> anyhow::Result<Issuer> {
    let text = configured.with_context(|| {
        format!(
            "issuer is missing, which kind = \"{}\" needs; write it as in the provider's metadata, such as issuer = {:?}",
            kind.as_str(),
            example(kind)
        )
    })?;
    let issuer = parse(text)?;
    if let Some(known) = known_issuers::broker_kind(issuer.url()) {
        let fix = match entra::in_national_cloud(text) {
            Some((tenant, issuer)) => {
                format!("write kind = \"{known}\", tenant = {tenant:?} and issuer = {issuer:?}")
            }
            None => format!("write kind = \"{known}\" and remove issuer"),
        };
        bail!(
            "issuer = {:?} belongs to a provider with rules of its own; {fix}",
            shown_url(text)
        );
    }
    if let Some(problem) = known_issuers::problem(text, issuer.url()) {
        bail!("issuer = {:?} {problem}", shown_url(text));
    }
    ensure!(
        kind != ProviderKind::Auth0 || text.ends_with('/') || is_loopback(issuer.url()),
        "issuer = {:?} has no slash at its end, and that of Auth0 has one; write {:?}",
        shown_url(text),
        shown_url(&format!("{text}/"))
    );
    Ok(issuer)
}

fn parse(text: &str) -> anyhow::Result<Issuer> {
    check_text(text)?;
    keycloak_pages::check(text)?;
    check_https(text)?;
    Issuer::parse(text).with_context(|| {
        let meant = ascii_form(text).map(|ascii| format!(", probably {ascii:?}"));
        format!(
            "issuer = {:?} is not an issuer; write it as in the provider's metadata{}",
            shown_url(text),
            meant.unwrap_or_default()
        )
    })
}

fn example(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Okta => "https://example.okta.com",
        ProviderKind::Auth0 => "https://example.eu.auth0.com/",
        ProviderKind::Cognito => {
            "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEfGhI"
        }
        _ => "https://auth.example.com/realms/prod",
    }
}
