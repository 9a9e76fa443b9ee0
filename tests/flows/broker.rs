//! Sign-ins through the broker, at imitated identity providers.

mod checking_users;
mod ending;
mod own_client;
mod resources;
mod restarting;
mod signing_in;
mod state;

use portcullis_scenarios::HttpResponse;

/// Asserts that the token endpoint answered with an error.
fn assert_token_error(response: &HttpResponse, status: u16, error: &str) {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.json()["error"], error, "{response:?}");
    assert_eq!(response.header("cache-control"), Some("no-store"));
}
