//! The claims about a user, in ID tokens and at the userinfo endpoint (OpenID Connect Core section
//! 5.1).

use portcullis_metadata::Scopes;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::settings::DevIdpSettings;

/// The claims that need a scope, by this scope (OpenID Connect Core section 5.4).
const CLAIMS_OF_SCOPES: [(&str, &[&str]); 4] = [
    (
        "profile",
        &[
            "name",
            "family_name",
            "given_name",
            "middle_name",
            "nickname",
            "preferred_username",
            "profile",
            "picture",
            "website",
            "gender",
            "birthdate",
            "zoneinfo",
            "locale",
            "updated_at",
        ],
    ),
    ("email", &["email", "email_verified"]),
    ("address", &["address"]),
    ("phone", &["phone_number", "phone_number_verified"]),
];

/// Returns all claims about a user: those of the settings, and others that follow from the name.
pub(crate) fn of_user(settings: &DevIdpSettings, subject: &str) -> Map<String, Value> {
    let derived = [
        ("sub", json!(subject)),
        ("name", json!(subject)),
        ("preferred_username", json!(subject)),
        ("email", json!(email(subject))),
        ("email_verified", json!(true)),
    ];
    let mut claims: Map<_, _> = derived
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    claims.extend(configured(settings, subject).cloned().unwrap_or_default());
    claims
}

/// Returns the claims of the settings about a user.
pub(crate) fn configured<'a>(
    settings: &'a DevIdpSettings,
    subject: &str,
) -> Option<&'a Map<String, Value>> {
    let mut users = settings.users.iter();
    users
        .find(|user| user.name == subject)
        .map(|user| &user.claims)
}

/// Removes the claims whose scope was not granted.
pub(crate) fn retain_granted(claims: &mut Map<String, Value>, scopes: &Scopes) {
    for (scope, names) in CLAIMS_OF_SCOPES {
        if !scopes.contains(scope) {
            claims.retain(|name, _| !names.contains(&name.as_str()));
        }
    }
}

/// Returns the e-mail address of a user: the name itself if it is one, or else an address in a
/// domain for documentation (RFC 2606 section 3).
fn email(subject: &str) -> String {
    match subject.split_once('@') {
        Some((local, domain)) if local.chars().chain(domain.chars()).all(is_plain) => {
            subject.to_owned()
        }
        _ => format!("{}@example.com", plain_name(subject)),
    }
}

/// Returns a user name in lower case, with hyphens for all characters that an e-mail address or a
/// login may not have.
pub(crate) fn plain_name(subject: &str) -> String {
    subject.replace(|c| !is_plain(c), "-").to_ascii_lowercase()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+')
}

/// Returns a UUID that follows from a text, as the identifier of an object (RFC 9562 section 5.8).
pub(crate) fn uuid(text: &str) -> String {
    let hash = Sha256::digest(text);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |range: std::ops::Range<usize>| -> String {
        bytes[range]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)].join("-")
}

/// Returns whether a text is a UUID.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// Returns a positive number that follows from a text, as the identifier of an account.
pub(crate) fn number(text: &str) -> u32 {
    let hash = Sha256::digest(text);
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&hash[..4]);
    u32::from_be_bytes(bytes) >> 1 | 1
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

    #[test]
    fn identifiers_follow_from_the_name() {
        assert!(is_uuid(&uuid("alice")));
        assert_eq!(uuid("alice"), uuid("alice"));
        assert_ne!(uuid("alice"), uuid("bob"));
        assert_ne!(number("alice"), number("bob"));
        assert!(!is_uuid("admins"));
    }
}
