//! [`SettingNames`]: how a user changes the settings of a doctor.

/// How a user changes the settings of a doctor, for the fixes that name them. By default, they are
/// the names in Rust; a program names its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingNames {
    /// Permits private addresses
    /// ([`Doctor::allow_private_addresses`](crate::Doctor::allow_private_addresses)).
    pub allow_private: &'static str,
    /// Names the file of a certificate authority that is trusted.
    pub ca_file: &'static str,
    /// Assumes PKCE ([`Doctor::assume_pkce`](crate::Doctor::assume_pkce)).
    pub assume_pkce: &'static str,
    /// Names a client that is registered beforehand.
    pub client_id: &'static str,
}

impl Default for SettingNames {
    fn default() -> Self {
        Self {
            allow_private: "Doctor::allow_private_addresses",
            ca_file: "FetchSettings::ca_file",
            assume_pkce: "Doctor::assume_pkce",
            client_id: "AuthorizerSettings::client",
        }
    }
}
