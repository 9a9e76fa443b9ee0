//! Messages of authorization servers: PKCE, the issuer of a response, token and device
//! authorization responses, and errors.

mod device_authorization;
mod oauth_error;
mod pkce;
mod response_issuer;
mod token_response;

pub use device_authorization::DeviceAuthorizationResponse;
pub use oauth_error::OAuthError;
pub use pkce::{PkceChallenge, PkceError, PkceVerifier};
pub use response_issuer::{ResponseIssuerError, check_response_issuer};
pub use token_response::TokenResponse;
