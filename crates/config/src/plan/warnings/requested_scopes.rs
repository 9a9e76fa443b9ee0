//! Whether clients request the scopes of a resource. Roles that count as scopes are assigned to
//! users: a client that requests one is rejected.

use crate::{file::Issuer, plan::ResourcePlan};

/// The claim of Auth0 with the permissions of the user, which a client requests as scopes:
/// <https://auth0.com/docs/get-started/apis/enable-role-based-access-control-for-apis>.
const PERMISSIONS: &str = "permissions";

/// Whether no issuer of a resource has scopes that are assigned: a required one can be a role.
pub(super) fn are_all(resource: &ResourcePlan, issuers: &[Issuer]) -> bool {
    let positions = resource.issuers.iter();
    positions
        .filter_map(|position| issuers.get(*position))
        .flat_map(|issuer| &issuer.scope_claims)
        .all(|claim| claim.trim_start_matches('/') == PERMISSIONS)
}
