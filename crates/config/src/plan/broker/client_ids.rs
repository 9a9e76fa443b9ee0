//! Identifiers of clients that the provider does not have.

use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::syntax::is_uuid;
use url::Url;

use super::provider_issuer::GOOGLE;
use crate::{file::BrokerProvider, plan::entra};

/// The end of the identifiers of OAuth clients at Google.
const OF_GOOGLE: &str = ".apps.googleusercontent.com";

/// Returns the warning about an identifier that no client at the provider has. An imitation on
/// loopback, which has `issuer`, has others.
pub(super) fn warning(provider: &BrokerProvider, key: &str) -> Option<String> {
    let kind = ProviderKind::from(provider.kind);
    let id = &provider.client_id;
    let issuer = provider.issuer.as_deref();
    let problem = match kind {
        ProviderKind::Google => {
            let is_imitation = issuer.is_some_and(|issuer| issuer != GOOGLE);
            if is_imitation || id.ends_with(OF_GOOGLE) {
                return None;
            }
            format!(
                "does not end in {OF_GOOGLE}, as that of each OAuth client at Google does; write the client ID that the Google \
                 Cloud console shows, such as \"1234567890-example{OF_GOOGLE}\""
            )
        }
        _ if id.ends_with(OF_GOOGLE) => format!(
            "is that of a client at Google; write the ID of the application at {}, or kind = \"google\"",
            kind.display_name()
        ),
        ProviderKind::Entra if !is_at_entra(provider) => return None,
        ProviderKind::Entra if is_tenant(provider) => {
            "is the ID of the tenant; write the application (client) ID, which the overview of the application shows beside it"
                .to_owned()
        }
        ProviderKind::Entra => {
            if is_uuid(id) {
                return None;
            }
            "is not the ID of an application at Entra ID, which is a UUID; write the application (client) ID that its overview \
             shows, such as \"11112222-bbbb-3333-cccc-4444dddd5555\""
                .to_owned()
        }
        ProviderKind::GitHub if is_app_id(id) => {
            "is the App ID of a GitHub App; write its client ID, which begins with Iv and is beside it in the settings of the app"
                .to_owned()
        }
        _ => return None,
    };
    Some(format!("{key}.client_id = {id:?} {problem}"))
}

/// Whether the provider is Entra ID itself, and not an imitation.
pub(in crate::plan) fn is_at_entra(provider: &BrokerProvider) -> bool {
    let is_entra = |issuer: &str| Url::parse(issuer).is_ok_and(|url| entra::is_entra(&url));
    ProviderKind::from(provider.kind) == ProviderKind::Entra
        && provider.issuer.as_deref().is_none_or(is_entra)
}

fn is_tenant(provider: &BrokerProvider) -> bool {
    let tenants = provider
        .tenant
        .iter()
        .chain(provider.tenants.iter().flatten());
    let mut tenants = tenants.filter(|tenant| is_uuid(tenant));
    tenants.any(|tenant| tenant.eq_ignore_ascii_case(&provider.client_id))
}

/// Whether a text is the number of a GitHub App. The IDs of old OAuth apps are 20 hexadecimal
/// digits.
fn is_app_id(id: &str) -> bool {
    id.len() < 20 && id.bytes().all(|byte| byte.is_ascii_digit())
}
