//! [`Profile`]: in what the kinds of providers differ.

mod auth0;
mod cognito;
mod entra;
mod github;
mod google;
mod keycloak;
mod oidc;
mod okta;

use portcullis_jose::{Algorithm, AlgorithmSet};

use crate::{ClientAuthentication, ProviderKind};

/// A fact about a kind of provider on which this crate depends, and where the provider states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirk {
    /// What is special, in Markdown. The subject is the provider.
    pub summary: &'static str,
    /// The URL of a page that states it.
    pub source: &'static str,
}

/// How users are identified at a kind of provider, and in what its protocol differs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub(crate) protocol: Protocol,
    /// The scopes that are requested if the settings have none.
    pub(crate) scopes: &'static [&'static str],
    /// Whether `offline_access` is added to the default scopes.
    pub(crate) offline_access: OfflineAccess,
    /// Whether `prompt=consent` is sent with `offline_access` (OpenID Connect Core section 11).
    pub(crate) prompts_consent: bool,
    /// Other parameters of the authorization request.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    /// Whether the provider supports PKCE although its metadata does not say so.
    pub(crate) has_unlisted_pkce: bool,
    /// Replaces what the metadata says about client authentication.
    pub(crate) client_authentication: Option<ClientAuthentication>,
    /// Whether a refresh request must repeat the scopes.
    pub(crate) repeats_scope: bool,
    pub(crate) identifier: Identifier,
    pub(crate) user_api: UserApi,
    /// Whether revoking a token ends this sign-in only. Otherwise tokens are not revoked.
    pub(crate) revokes_one_sign_in: bool,
    /// The algorithms of ID tokens.
    pub(crate) algorithms: AlgorithmSet,
    pub(crate) quirks: &'static [Quirk],
}

/// How the provider says who the user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// By ID tokens, with discovered endpoints.
    OpenId,
    /// By the API of GitHub, with known endpoints.
    GitHub,
}

/// When `offline_access` is requested, without which some providers give no refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfflineAccess {
    Requested,
    /// Unless the metadata lists scopes without it.
    IfListed,
    NotRequested,
}

/// The identifier of a user that the provider never assigns again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identifier {
    /// The issuer and `sub`.
    Subject,
    /// The tenant and the object: `tid` and `oid`. `sub` differs for each application.
    TenantAndObject,
    /// The issuer and the number of the account.
    AccountNumber,
}

/// When the provider's user API is asked, beside [checks with an access
/// token](crate::IdentityProvider::check_with_access_token).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserApi {
    /// Never: its answer does not identify the user.
    Never,
    /// If a refresh returned no ID token.
    WithoutIdToken,
    /// Always, because the ID token lacks claims.
    Always,
}

impl Profile {
    /// An OpenID provider that supports everything that is needed.
    const OPENID: Self = Self {
        protocol: Protocol::OpenId,
        scopes: &["openid", "profile", "email"],
        offline_access: OfflineAccess::Requested,
        prompts_consent: false,
        parameters: &[],
        has_unlisted_pkce: true,
        client_authentication: None,
        repeats_scope: false,
        identifier: Identifier::Subject,
        user_api: UserApi::WithoutIdToken,
        revokes_one_sign_in: true,
        algorithms: RS256,
        quirks: &[],
    };
}

/// The scope that requests a refresh token (OpenID Connect Core section 11).
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

const RS256: AlgorithmSet = AlgorithmSet::EMPTY.with(Algorithm::Rs256);

/// All algorithms, for providers whose operator chooses one. None of them is symmetric.
const ALL_ALGORITHMS: AlgorithmSet = RS256
    .with(Algorithm::Rs384)
    .with(Algorithm::Rs512)
    .with(Algorithm::Ps256)
    .with(Algorithm::Ps384)
    .with(Algorithm::Ps512)
    .with(Algorithm::Es256)
    .with(Algorithm::Es384)
    .with(Algorithm::Es512)
    .with(Algorithm::EdDsa);

impl ProviderKind {
    /// Returns the facts about this kind of provider on which this crate depends.
    pub fn quirks(self) -> &'static [Quirk] {
        self.profile().quirks
    }

    /// Returns the scopes that are requested if the settings have none. A provider of the kind
    /// [`Oidc`](Self::Oidc) whose metadata lists scopes without `offline_access` is not asked for
    /// that.
    pub fn default_scopes(self) -> Vec<&'static str> {
        let profile = self.profile();
        let mut scopes = profile.scopes.to_vec();
        if profile.offline_access != OfflineAccess::NotRequested {
            scopes.push(OFFLINE_ACCESS);
        }
        scopes
    }

    pub(crate) const fn profile(self) -> &'static Profile {
        match self {
            Self::Entra => &entra::PROFILE,
            Self::Google => &google::PROFILE,
            Self::GitHub => &github::PROFILE,
            Self::Okta => &okta::PROFILE,
            Self::Auth0 => &auth0::PROFILE,
            Self::Keycloak => &keycloak::PROFILE,
            Self::Cognito => &cognito::PROFILE,
            Self::Oidc => &oidc::PROFILE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every quirk has a source and is in the table of the README, and the table has no other rows.
    #[test]
    fn every_quirk_is_documented() {
        let page = include_str!("../README.md");
        let mut quirks = 0;
        for kind in ProviderKind::ALL {
            for Quirk { summary, source } in kind.quirks() {
                let row = format!("| {} | {summary} | <{source}> |", kind.as_str());
                assert!(
                    page.lines().any(|line| line == row),
                    "README.md needs the row\n{row}"
                );
                assert!(source.starts_with("https://"), "{source}");
                quirks += 1;
            }
        }
        let is_row = |line: &&str| {
            ProviderKind::ALL
                .iter()
                .any(|kind| line.starts_with(&format!("| {} | ", kind.as_str())))
        };
        assert_eq!(page.lines().filter(is_row).count(), quirks);
    }

    /// PR3: providers that sign with RS256 alone may use nothing else.
    #[test]
    fn algorithms_are_those_of_the_provider() {
        for kind in ProviderKind::ALL {
            let expected = match kind {
                ProviderKind::Keycloak | ProviderKind::Oidc => Algorithm::ALL.to_vec(),
                _ => vec![Algorithm::Rs256],
            };
            let algorithms: Vec<_> = kind.profile().algorithms.iter().collect();
            assert_eq!(algorithms, expected, "{kind:?}");
        }
    }
}
