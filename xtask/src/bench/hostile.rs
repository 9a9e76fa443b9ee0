//! Requests that are refused, sent beside good ones: what is left of the good ones' rate.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;

use super::{figures::Spread, load, portcullis, rig::Rig};

/// The kinds, in the order of [`requests`].
pub(super) const KINDS: [&str; 3] = ["invalid signatures", "unknown key ids", "garbage"];

/// How many different requests of a kind are sent in turn.
const VARIETY: usize = 64;

/// Each takes four runs, and none of them is compared with anything outside its round.
const MOST_ROUNDS: usize = 5;

/// The rate of good requests beside each kind of hostile ones, against their rate beside good ones.
#[derive(Serialize)]
pub(super) struct Kept(pub(super) [Spread; KINDS.len()]);

/// Measures, in rounds in which the good ones and each kind have their turn.
pub(super) async fn measure(rig: &Rig<'_>, rounds: usize, times: usize) -> anyhow::Result<Kept> {
    let kinds = requests(rig.token());
    let mut ratios = [const { Vec::new() }; KINDS.len()];
    let rounds = rounds.min(MOST_ROUNDS);
    for round in 0..rounds {
        eprintln!("hostile round {} of {rounds}", round + 1);
        let address = rig.protected();
        let peace = load::run_beside(address, rig.request(), times, &[rig.request().to_vec()]).await?;
        for (kind, ratios) in kinds.iter().zip(&mut ratios) {
            rig.clear_log()?;
            let strife = load::run_beside(address, rig.request(), times, kind).await?;
            ratios.push(peace.as_secs_f64() / strife.as_secs_f64());
        }
    }
    Ok(Kept(ratios.map(Spread::of)))
}

/// Hostile requests, made of a good token.
fn requests(token: &str) -> [Vec<Vec<u8>>; KINDS.len()] {
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let (_, payload) = signed.split_once('.').unwrap_or((signed, ""));
    let many = |make: &dyn Fn(usize) -> String| {
        (0..VARIETY).map(|number| portcullis::tool_call(&make(number), "none")).collect::<Vec<_>>()
    };
    [
        many(&|number| format!("{signed}.{}", mangled(signature, number))),
        many(&|number| {
            let header = format!(r#"{{"alg":"RS256","typ":"JWT","kid":"unknown-{number}"}}"#);
            format!("{}.{payload}.{signature}", URL_SAFE_NO_PAD.encode(header))
        }),
        many(&|number| mangled(&"x".repeat(token.len()), number)),
    ]
}

/// Another text of the same length and alphabet.
fn mangled(text: &str, number: usize) -> String {
    let changed = |(at, letter)| match (at == number, letter) {
        (true, 'A') => 'B',
        (true, _) => 'A',
        (false, letter) => letter,
    };
    text.chars().enumerate().map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_differs_from_the_good_one() {
        let token = format!("eyJhbGciOiJSUzI1NiJ9.{}.{}", "p".repeat(90), "A".repeat(342));
        for kind in requests(&token) {
            assert_eq!(kind.len(), VARIETY);
            assert!(kind.iter().all(|request| !String::from_utf8_lossy(request).contains(&token)));
        }
    }
}
