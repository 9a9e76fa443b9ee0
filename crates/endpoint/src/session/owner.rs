use portcullis_metadata::Scopes;
use portcullis_session::Owner;
use portcullis_verifier::Principal;

/// Returns the owner of this principal's sessions. Without a principal (authentication is off), the
/// owner is anonymous.
///
/// Returns `None` for a token without a subject, unless its issuer's settings let clients own
/// sessions.
pub(crate) fn owner(principal: Option<&Principal>) -> Option<Owner<'_>> {
    let Some(principal) = principal else {
        return Some(Owner::Anonymous);
    };
    let issuer = principal.issuer().as_str();
    match principal.subject() {
        Some(subject) => Some(Owner::Subject {
            issuer,
            subject,
            client: principal.client(),
        }),
        None if principal.may_own_sessions_as_client() => principal
            .client()
            .map(|client| Owner::Client { issuer, client }),
        None => None,
    }
}

/// Returns the principal's scopes; none without a principal.
pub(crate) fn scopes(principal: Option<&Principal>) -> &Scopes {
    static NONE: Scopes = Scopes::empty();
    principal.map_or(&NONE, Principal::scopes)
}
