//! Secrets with more than the secret in their source, or another text.

use portcullis_metadata::syntax::is_uuid;

use super::{broker::is_at_entra, secret_files};
use crate::Config;

/// The byte order mark of UTF-8, with which some editors begin a file.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The problem of a secret that begins with a byte order mark, and its fix.
pub(super) const MARKED: &str = "begins with a byte order mark (U+FEFF), which counts as a part of the secret; save it as UTF-8 \
                                 without a byte order mark";

/// The fewest characters of a value after the name of a variable. Fewer can be the padding of a
/// secret in base32 or base64.
const MIN_VALUE: usize = 7;

/// Returns a warning for each secret that its service certainly did not give in this form. None
/// repeats a part of the secret.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let texts = secret_files::secrets(config).into_iter();
    texts
        .filter(|(key, _)| is_sent(key))
        .filter_map(|(key, source)| {
            let secret = source.read().ok()?;
            let problem = problem(secret.secret())
                .or_else(|| line_break(&key, secret.secret()))
                .or_else(|| id_of_secret(config, &key, secret.secret()))?;
            Some(format!("{key}: {source} {problem}"))
        })
        .collect()
}

/// Whether the secret is compared or sent as it is. Keys have forms of their own, and the values of
/// headers any form.
fn is_sent(key: &str) -> bool {
    let keys = ["admin.token", "admin.metrics_token", "shared.password"];
    keys.contains(&key) || key.ends_with(".client_secret")
}

/// Returns what else than a secret the text evidently has, and the fix.
fn problem(text: &str) -> Option<&'static str> {
    let is_quoted = |quote: char| {
        let inner = text
            .strip_prefix(quote)
            .and_then(|text| text.strip_suffix(quote));
        inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(quote))
    };
    if text.starts_with(BYTE_ORDER_MARK) {
        Some(MARKED)
    } else if is_assignment(text) {
        Some(
            "is a line of an environment file, NAME=value, all of which counts as the secret; write only the value there",
        )
    } else if is_quoted('"') || is_quoted('\'') {
        Some("has quotes around the secret, which count as a part of it; remove them")
    } else {
        None
    }
}

/// Whether a text begins with the name of an environment variable, an equals sign and a value.
fn is_assignment(text: &str) -> bool {
    let text = text.strip_prefix("export ").unwrap_or(text);
    let Some((name, value)) = text.split_once('=') else {
        return false;
    };
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_word = |name: &str| name.chars().all(|c| c.is_ascii_uppercase());
    // A random secret can have a short beginning of this kind.
    let is_name = name.len() >= 4
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(is_of_name)
        && (name.contains('_') || is_word(name));
    is_name && value.len() >= MIN_VALUE && !value.starts_with('=')
}

/// A secret of a client has visible characters and spaces (RFC 6749, appendix A.2): the line end is
/// sent as a part of it.
fn line_break(key: &str, secret: &str) -> Option<&'static str> {
    (key.ends_with(".client_secret") && secret.contains(['\n', '\r'])).then_some(
        "has a line break inside, which is sent as a part of the secret; write only the secret there",
    )
}

/// Entra ID shows a secret beside its ID, which is a UUID. The secret is none.
fn id_of_secret(config: &Config, key: &str, secret: &str) -> Option<&'static str> {
    let mut providers = config.providers().enumerate();
    let is_of_entra = providers.any(|(position, provider)| {
        is_at_entra(provider) && key == format!("broker.provider[{position}].client_secret")
    });
    (is_of_entra && is_uuid(secret)).then_some(
        "is a UUID, as the ID of a secret at Entra ID is, and not its value; write the value, which Entra ID shows only once, or \
         create another secret",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::from_text;

    /// Returns the warnings if all secrets have this text.
    fn warned(text: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        fs::write(&file, text).unwrap();
        let source = format!("{{ file = {:?} }}", file.display());
        let config = format!(
            "base_url = \"https://mcp.example.com\"\nadmin = {{ listen = \"127.0.0.1:9900\", token = {source} }}\n\
             shared = {{ redis = \"redis://127.0.0.1\", password = {source} }}\nsession = {{ keys = [{source}] }}\n\
             [[issuer]]\nissuer = \"https://a.example\"\nclient_secret = {source}\n\
             [broker]\nintrospection = [{{ client_id = \"a\", client_secret = {source}, resource = \"/mcp\" }}]\n\
             [[broker.provider]]\nkind = \"entra\"\nclient_id = \"b\"\nclient_secret = {source}\n\
             [[broker.provider]]\nkind = \"okta\"\nclient_id = \"c\"\nclient_secret = {source}\n\
             [[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\""
        );
        let found = warnings(&from_text(&config).unwrap());
        assert!(
            found.iter().all(|line| !line.contains("hunter2")),
            "{found:#?}"
        );
        found
    }

    fn keys(found: &[String]) -> Vec<&str> {
        let keys = found.iter().map(|line| line.split(": ").next());
        keys.flatten().collect()
    }

    const CLIENTS: [&str; 4] = [
        "issuer[0].client_secret",
        "broker.provider[0].client_secret",
        "broker.provider[1].client_secret",
        "broker.introspection[0].client_secret",
    ];

    /// J6, J9: a secret of two lines is named and not printed.
    #[test]
    fn secrets_have_one_line() {
        for text in ["hunter2\nx\n", "hunter2\n\n", "hunter2\rx"] {
            let found = warned(text);
            assert_eq!(keys(&found), CLIENTS);
            assert!(found[0].starts_with("issuer[0].client_secret: the file "));
            assert!(found[0].contains("; write only the secret there"));
        }
        for text in ["hunter2", "hunter2\n", "hunter2\r\n", "hunter 2"] {
            assert_eq!(warned(text), Vec::<String>::new());
        }
    }

    /// J6, J9: what is evidently more than a secret is named once, and not printed.
    #[test]
    fn evident_mistakes_are_named() {
        for (text, words) in [
            ("CLIENT_SECRET=hunter2\n", "; write only the value there"),
            (
                "A_BC=hunter2\nCLIENT_SECRET=hunter2",
                "; write only the value there",
            ),
            ("export TOKEN=\"hunter2\"", "; write only the value there"),
            ("\"hunter2\"\n", "; remove them"),
            ("'hunter2'", "; remove them"),
            ("\u{feff}hunter2", "(U+FEFF)"),
        ] {
            let found = warned(text);
            let all = [&["admin.token", "shared.password"], &CLIENTS[..]].concat();
            assert_eq!(keys(&found), all, "{text}");
            assert!(
                found.iter().all(|line| line.contains(words)),
                "{text}: {found:#?}"
            );
        }
        for text in [
            "hunter2==",
            "HUNTER2TQ====",
            "HUNTER2TQ=======",
            "AB2=hunter2",
            "hunter_2=hunter2hunter2",
            "CLIENT_SECRET=",
            "\"hunter2",
            "\"hunter2\"x\"",
            "\"",
            "\"\"",
        ] {
            assert_eq!(warned(text), Vec::<String>::new(), "{text}");
        }
    }

    /// J6, J9: the ID of a secret at Entra ID is not its value.
    #[test]
    fn the_id_of_a_secret_is_no_secret() {
        let found = warned("aaaabbbb-0000-cccc-1111-dddd2222eeee");
        assert_eq!(keys(&found), ["broker.provider[0].client_secret"]);
        assert!(found[0].contains(" is a UUID, ") && !found[0].contains("aaaabbbb"));
    }
}
