/// The scope for access while the user is absent (OpenID Connect Core section 11). Authorization
/// servers that support it issue a refresh token only if it is requested.
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";
