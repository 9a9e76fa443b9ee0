//! [`ProviderSettingsError`]: why the settings of a provider cannot be used.

use portcullis_verifier::VerifierSettingsError;

use crate::ProviderSettings;

/// Why the settings of a provider cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderSettingsError {
    /// The name is not 1 to 32 lower-case letters, digits and hyphens.
    #[error("the name of a provider must be 1 to 32 lower-case letters, digits and hyphens")]
    Name,
    /// `client_id` or `client_secret` is empty.
    #[error("`client_id` and `client_secret` must not be empty")]
    Credentials,
    /// The issuer has no tenant: its first path segment is not a UUID.
    #[error(
        "the issuer of Entra must be https://login.microsoftonline.com/TENANT/v2.0 with the identifier of the tenant, a UUID; \
         `common`, `organizations` and domain names are not accepted"
    )]
    EntraIssuer,
    /// An entry of `tenants` is not a UUID.
    #[error("each of `tenants` must be the identifier of a tenant, a UUID")]
    Tenant,
    /// `tenants` does not contain the tenant of the issuer.
    #[error("`tenants` must contain the tenant of the issuer")]
    IssuerTenantNotListed,
    /// `tenants` is set for another kind than Entra.
    #[error("only a provider of the kind `entra` has `tenants`")]
    TenantsNotSupported,
    /// There are more than [`ProviderSettings::MAX_TENANTS`].
    #[error("at most {} tenants can be listed", ProviderSettings::MAX_TENANTS)]
    TooManyTenants,
    /// The issuer of GitHub has a path, or is not the address of a GitHub server.
    #[error(
        "the issuer of GitHub must be https://github.com or the origin of a GitHub Enterprise server"
    )]
    GitHubIssuer,
    /// A scope is not a scope name.
    #[error("each scope must be a scope name, without spaces")]
    Scope,
    /// The scopes of an OpenID provider do not contain `openid`.
    #[error("the scopes must contain `openid`")]
    NoOpenIdScope,
    /// The URL of the API may not be fetched.
    #[error("the URL of the API must be https, or http with a loopback host, without a query")]
    ApiUrl,
    /// The issuer cannot be used.
    #[error(transparent)]
    Issuer(#[from] VerifierSettingsError),
}
