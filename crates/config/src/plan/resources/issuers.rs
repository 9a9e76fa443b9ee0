use portcullis_verifier::Validation;

use super::context::Context;
use crate::{
    Diagnostics,
    file::{self, Authorization, Resource},
    shown_url,
};

use crate::plan::IssuerPlan;

/// Returns the issuers of a resource with their positions in the configuration, and adds an error
/// for each that is unknown or listed twice. Returns `None` if one is invalid, or there is none and
/// tokens are required.
pub(super) fn issuers_of<'a>(
    resource: &Resource,
    context: &Context<'a>,
    errors: &mut Diagnostics<'_>,
) -> Option<Vec<(usize, &'a IssuerPlan)>> {
    let configured = &context.config.issuer;
    let mut positions: Vec<usize> = Vec::new();
    let mut is_valid = true;
    match &resource.issuers {
        None => positions.extend(0..configured.len()),
        Some(names) => {
            for name in names {
                match configured.iter().position(|issuer| issuer.issuer == *name) {
                    Some(position) if positions.contains(&position) => {
                        is_valid = false;
                        errors.add(
                            "issuers",
                            format!("issuers has {:?} twice; remove one", shown_url(name)),
                        );
                    }
                    Some(position) => positions.push(position),
                    None => {
                        is_valid = false;
                        errors.add("issuers", unknown_issuer(name, configured));
                    }
                }
            }
        }
    }
    if is_valid && positions.is_empty() && resource.auth != Authorization::None {
        let key = if resource.issuers.is_some() {
            "issuers"
        } else {
            ""
        };
        errors.add(
            key,
            format!(
                "no issuer can issue tokens for {:?}; add an [[issuer]], or switch authorization off with auth = \"none\"",
                resource.endpoint
            ),
        );
        return None;
    }
    let plans = positions
        .iter()
        .map(|position| Some((*position, context.issuers.get(*position)?.as_ref()?)));
    let plans: Option<Vec<_>> = plans.collect();
    let mut introspecting = plans
        .iter()
        .flatten()
        .filter(|(_, plan)| matches!(plan.settings.validation, Validation::Introspection(_)));
    if let (Some((first, _)), Some((second, _))) = (introspecting.next(), introspecting.next()) {
        errors.add(
            "issuers",
            format!(
                "issuer[{first}] and issuer[{second}] both introspect all tokens, but opaque tokens can go to one issuer only; \
                 set validate = \"jwt\" or \"jwt+introspection\" for one of them"
            ),
        );
        return None;
    }
    plans.filter(|_| is_valid)
}

/// Returns the error about an issuer that is not configured.
fn unknown_issuer(name: &str, configured: &[file::Issuer]) -> String {
    let bare = |text: &str| text.trim_end_matches('/').to_ascii_lowercase();
    let fix = match configured
        .iter()
        .find(|issuer| bare(&issuer.issuer) == bare(name))
    {
        Some(similar) => format!("write it as there, {:?}", shown_url(&similar.issuer)),
        None => "add or correct it".to_owned(),
    };
    format!(
        "issuers has {:?}, and no [[issuer]] has exactly this identifier; {fix}",
        shown_url(name)
    )
}

/// Adds an error if ID tokens could be accepted.
///
/// An ID token can have the same audience as an access token if `aud` is the issuer's own name for
/// the resource. Required scopes exclude it, because an ID token has none.
pub(super) fn check_application_audiences<'a>(
    resource: &Resource,
    mut issuers: impl Iterator<Item = &'a IssuerPlan>,
    errors: &mut Diagnostics<'_>,
) -> Option<()> {
    let named = issuers.find_map(|plan| Some((plan, plan.settings.application_audiences.first()?)));
    let Some((plan, name)) = named.filter(|_| resource.required_scopes.is_empty()) else {
        return Some(());
    };
    errors.add(
        "required_scopes",
        format!(
            "required_scopes is empty, and issuer \"{}\" has \"{name}\" in audiences, which ID tokens can have as well; set \
             required_scopes to a scope of the access tokens",
            plan.settings.issuer
        ),
    );
    None
}
