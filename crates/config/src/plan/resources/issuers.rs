use portcullis_metadata::ResourceUri;
use portcullis_verifier::{AudienceName, Validation};

use super::context::Context;
use crate::{
    Diagnostics,
    file::{Authorization, Resource},
    shown_url,
};

use crate::plan::{IssuerPlan, base_url, folded::folded};

/// The issuers of a resource.
pub(super) struct AcceptedIssuers<'a> {
    /// Those of the configuration, with their positions.
    pub(super) plans: Vec<(usize, &'a IssuerPlan)>,
    /// Whether the broker is one of them.
    pub(super) accepts_broker: bool,
}

/// Returns the issuers of a resource, and adds an error for each that is unknown or listed twice.
/// Returns `None` if one is invalid, or there is none and tokens are required.
pub(super) fn issuers_of<'a>(
    resource: &Resource,
    context: &Context<'a>,
    errors: &mut Diagnostics<'_>,
) -> Option<AcceptedIssuers<'a>> {
    let listed = listed_issuers(resource, context, errors)?;
    let needs_token = resource.auth != Authorization::None;
    if listed.positions.is_empty() && !listed.has_broker && needs_token {
        let key = if resource.issuers.is_some() {
            "issuers"
        } else {
            ""
        };
        errors.add(key, no_issuer(resource, context));
        return None;
    }
    let plans = listed
        .positions
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
    Some(AcceptedIssuers {
        plans: plans?,
        accepts_broker: listed.has_broker && needs_token,
    })
}

/// The issuers that a resource lists, or all without a list.
struct ListedIssuers {
    positions: Vec<usize>,
    has_broker: bool,
}

fn listed_issuers(
    resource: &Resource,
    context: &Context<'_>,
    errors: &mut Diagnostics<'_>,
) -> Option<ListedIssuers> {
    let configured = &context.config.issuer;
    let Some(names) = &resource.issuers else {
        return Some(ListedIssuers {
            positions: (0..configured.len()).collect(),
            has_broker: context.broker.is_some(),
        });
    };
    let mut listed = ListedIssuers {
        positions: Vec::new(),
        has_broker: false,
    };
    let mut is_valid = true;
    for (number, name) in names.iter().enumerate() {
        if names[..number].contains(name) {
            is_valid = false;
            errors.add(
                "issuers",
                format!("issuers has {:?} twice; remove one", shown_url(name)),
            );
        } else if context.broker.is_some_and(|own| own.as_str() == name) {
            listed.has_broker = true;
        } else if let Some(position) = configured.iter().position(|issuer| issuer.issuer == *name) {
            listed.positions.push(position);
        } else {
            is_valid = false;
            // The broker's issuer is unknown if `base_url` is invalid, which has its own error.
            if context.broker.is_none() || base_url(&context.config.base_url).is_ok() {
                errors.add("issuers", unknown_issuer(name, context));
            }
        }
    }
    is_valid.then_some(listed)
}

/// Returns the error about a resource that no issuer has tokens for.
fn no_issuer(resource: &Resource, context: &Context<'_>) -> String {
    let fix = match context.broker {
        Some(own) => format!(
            "remove `issuers`, or list {:?} for the broker",
            own.as_str()
        ),
        None => "add an [[issuer]], or a [broker] in front of a provider whose tokens are not for this server (auth = \
                 \"none\" would let anyone use it)"
            .to_owned(),
    };
    format!(
        "no issuer can issue tokens for {:?}; {fix}",
        resource.endpoint
    )
}

/// Returns the error about an issuer that is not configured.
fn unknown_issuer(name: &str, context: &Context<'_>) -> String {
    let configured = context.config.issuer.iter();
    let configured = configured.map(|issuer| issuer.issuer.as_str());
    if let Some(own) = context
        .broker
        .filter(|own| folded(own.as_str()) == folded(name))
    {
        return format!(
            "issuers has {:?}, which is not exactly the issuer of the broker; write {:?}",
            shown_url(name),
            own.as_str()
        );
    }
    let similar = configured
        .into_iter()
        .find(|issuer| folded(issuer) == folded(name));
    let fix = match (similar, context.broker) {
        (Some(similar), _) => format!("write it as there, {:?}", shown_url(similar)),
        (None, Some(own)) if context.config.issuer.is_empty() => format!(
            "the [broker] issues the tokens: write {:?}, which is base_url, or remove issuers",
            own.as_str()
        ),
        (None, _) => "add or correct it".to_owned(),
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
    uri: &ResourceUri,
    issuers: impl Iterator<Item = &'a IssuerPlan>,
    errors: &mut Diagnostics<'_>,
) -> Option<()> {
    let mut names = issuers.flat_map(|plan| {
        let audiences = plan.settings.audiences.iter();
        let of_resource = audiences.filter(|audience| audience.resource == *uri);
        of_resource.map(move |audience| (plan, &audience.name))
    });
    let named = names.find(|(_, name)| matches!(name, AudienceName::Application(_)));
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
