//! Requests that are refused, sent beside good ones: what is left of the good ones' rate.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;

use super::{figures::Spread, load, portcullis, rig::Rig, varied::Varied};

/// The kinds, in the order of [`kinds`].
pub(super) const KINDS: [&str; 3] = ["invalid signatures", "unknown key ids", "garbage"];

/// Each takes four runs, and none of them is compared with anything outside its round.
const MOST_ROUNDS: usize = 5;

/// The rate of good requests beside each kind of hostile ones, against their rate beside good ones.
#[derive(Serialize)]
pub(super) struct Kept(pub(super) [Spread; KINDS.len()]);

/// Measures, in rounds in which the good ones and each kind have their turn.
pub(super) async fn measure(rig: &Rig<'_>, rounds: usize, times: usize) -> anyhow::Result<Kept> {
    let kinds = kinds(rig.token());
    let mut ratios = [const { Vec::new() }; KINDS.len()];
    let rounds = rounds.min(MOST_ROUNDS);
    for round in 0..rounds {
        eprintln!("hostile round {} of {rounds}", round + 1);
        let address = rig.protected();
        let peace = load::run_beside(address, rig.request(), times, rig.request()).await?;
        for (kind, ratios) in kinds.iter().zip(&mut ratios) {
            rig.clear_log()?;
            let strife = load::run_beside(address, rig.request(), times, kind).await?;
            ratios.push(peace.as_secs_f64() / strife.as_secs_f64());
        }
    }
    Ok(Kept(ratios.map(Spread::of)))
}

/// Hostile requests, made of a good token.
fn kinds(token: &str) -> [Varied; KINDS.len()] {
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let (_, payload) = signed.split_once('.').unwrap_or((signed, ""));
    let header = unknown_kid(0);
    let garbage = "x".repeat(token.len());
    let call = |token: &str| portcullis::tool_call(token, "none");
    [
        // Not at the start: a number that is larger than the modulus is refused before it costs anything.
        Varied::new(call(token), signature, signature.len() / 2, letters),
        Varied::new(call(&format!("{header}.{payload}.{signature}")), &header, 0, unknown_kid),
        Varied::new(call(&garbage), &garbage, 0, letters),
    ]
}

/// Eleven letters that a token may have.
pub(super) fn letters(number: u64) -> String {
    URL_SAFE_NO_PAD.encode(number.to_be_bytes())
}

fn unknown_kid(number: u64) -> String {
    URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"RS256","typ":"JWT","kid":"unknown-{number:020}"}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_differs_from_the_good_one_and_from_every_other() {
        let token = format!("eyJhbGciOiJSUzI1NiJ9.{}.{}", "p".repeat(90), "A".repeat(342));
        let length = portcullis::tool_call(&token, "none").len();
        for mut kind in kinds(&token) {
            let [one, other] = [1 << 40, 7].map(|number| String::from_utf8(kind.number(number).to_vec()).unwrap());
            assert!(!one.contains(&token) && one != other);
            assert!(one.starts_with("POST ") && one.len().abs_diff(length) < 100);
        }
    }
}
