//! The claims about a user, in ID tokens and at the userinfo endpoint (OpenID Connect Core section
//! 5.1).

use portcullis_metadata::Scopes;
use serde_json::{Map, Value, json};

/// Returns the claims about a user that the scopes request (OpenID Connect Core section 5.4).
pub(super) fn of_user(subject: &str, scopes: &Scopes) -> Map<String, Value> {
    let mut claims = Map::new();
    let mut insert = |name: &str, value| claims.insert(name.to_owned(), value);
    insert("sub", json!(subject));
    if scopes.contains("profile") {
        insert("name", json!(subject));
        insert("preferred_username", json!(subject));
    }
    if scopes.contains("email") {
        insert("email", json!(email(subject)));
        insert("email_verified", json!(true));
    }
    claims
}

/// Returns the e-mail address of a user: the name itself if it is one, or else an address in a
/// domain for documentation (RFC 2606 section 3).
fn email(subject: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    match subject.split_once('@') {
        Some((local, domain)) if local.chars().chain(domain.chars()).all(is_plain) => {
            subject.to_owned()
        }
        _ => {
            let local = subject.replace(|c| !is_plain(c), "-").to_lowercase();
            format!("{local}@example.com")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_has_an_address() {
        for (subject, address) in [
            ("alice", "alice@example.com"),
            ("zoe@corp.example", "zoe@corp.example"),
            ("Zoë Müller", "zo--m-ller@example.com"),
            ("a@b@c", "a-b-c@example.com"),
        ] {
            assert_eq!(email(subject), address);
        }
    }
}
