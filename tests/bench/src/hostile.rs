//! The rate of valid requests while other connections send invalid ones.

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;

use super::{
    figures::Spread,
    load, portcullis,
    request_template::{RequestTemplate, token_letters},
    servers::Servers,
};

/// The names of the hostile requests, in the order of [`hostile_requests`].
pub(super) const HOSTILE_REQUESTS: [&str; 3] = ["invalid signatures", "unknown key ids", "garbage"];

/// The maximum number of rounds. A round has four runs, which are compared only with each other.
const MAX_ROUNDS: usize = 5;

/// The rate of valid requests beside each type of hostile requests, divided by their rate beside
/// valid requests.
#[derive(Serialize)]
pub(super) struct RateRatios(pub(super) [Spread; HOSTILE_REQUESTS.len()]);

/// Measures in rounds of one run with valid requests and one with each type of hostile requests.
pub(super) async fn measure(
    servers: &Servers<'_>,
    rounds: usize,
    times: usize,
) -> anyhow::Result<RateRatios> {
    let hostile_requests = hostile_requests(servers.token())?;
    let mut ratios = [const { Vec::new() }; HOSTILE_REQUESTS.len()];
    let rounds = rounds.min(MAX_ROUNDS);
    for round in 0..rounds {
        eprintln!("hostile round {} of {rounds}", round + 1);
        let address = servers.protected();
        let beside_valid =
            load::run_beside(address, servers.request(), times, servers.request()).await?;
        for (hostile, ratios) in hostile_requests.iter().zip(&mut ratios) {
            servers.clear_log()?;
            let beside_hostile =
                load::run_beside(address, servers.request(), times, hostile).await?;
            ratios.push(beside_valid.as_secs_f64() / beside_hostile.as_secs_f64());
        }
    }
    Ok(RateRatios(ratios.map(Spread::of)))
}

/// Returns hostile requests that are derived from a valid token.
fn hostile_requests(token: &str) -> anyhow::Result<[RequestTemplate; HOSTILE_REQUESTS.len()]> {
    let mut segments = token.split('.').skip(1);
    let payload = segments.next().context("the token has no payload")?;
    let signature = segments.next().context("the token has no signature")?;
    let header = unknown_kid(0);
    let garbage = "x".repeat(token.len());
    let call = |token: &str| portcullis::tool_call(token, "none");
    Ok([
        // Not at the start, because a number that exceeds the modulus is rejected without any
        // computation.
        RequestTemplate::new(call(token), signature, signature.len() / 2, token_letters)?,
        RequestTemplate::new(
            call(&format!("{header}.{payload}.{signature}")),
            &header,
            0,
            unknown_kid,
        )?,
        RequestTemplate::new(call(&garbage), &garbage, 0, token_letters)?,
    ])
}

/// Returns a token's header with a key identifier that no key has.
fn unknown_kid(number: u64) -> String {
    URL_SAFE_NO_PAD.encode(format!(
        r#"{{"alg":"RS256","typ":"JWT","kid":"unknown-{number:020}"}}"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requests_are_different() {
        let token = format!(
            "eyJhbGciOiJSUzI1NiJ9.{}.{}",
            "p".repeat(90),
            "A".repeat(342)
        );
        let length = portcullis::tool_call(&token, "none").len();
        for mut hostile in hostile_requests(&token).unwrap() {
            let [one, other] = [1 << 40, 7]
                .map(|number| String::from_utf8(hostile.number(number).to_vec()).unwrap());
            assert!(!one.contains(&token));
            assert!(one != other);
            assert!(one.starts_with("POST "));
            assert!(one.len().abs_diff(length) < 100);
        }
    }
}
