//! [`DeviceAuthorization`]: what a user enters on another device.

use std::time::Duration;

use url::Url;

/// What a user enters on another device (RFC 8628 section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceAuthorization {
    /// The code to enter: 1 to 64 printable ASCII characters.
    pub user_code: String,
    /// The page at which to enter it: `https`, or `http` on loopback.
    pub verification_uri: Url,
    /// The same page with the code in it, if the server offers that.
    pub verification_uri_complete: Option<Url>,
    /// How long the code is valid, at most [`MAX_LIFETIME`](Self::MAX_LIFETIME).
    pub expires_in: Duration,
}

impl DeviceAuthorization {
    /// The longest time to wait for the user: 30 min, even if the code is valid for longer.
    pub const MAX_LIFETIME: Duration = Duration::from_secs(30 * 60);
}
