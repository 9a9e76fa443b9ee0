mod broker;

use std::fmt::Write as _;

use super::{provider, values::Values};

/// The issuer while there is no answer. The name is reserved (RFC 2606), so that it is never
/// reached.
const UNKNOWN_ISSUER: &str = "https://issuer.invalid";

/// Returns the text of the configuration file, with comments.
pub(super) fn text(values: &Values) -> String {
    let mut text = String::from(HEAD);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "base_url = {}\n{}",
        quoted(&values.base_url),
        listen(values)
    );
    text += &match &values.broker {
        Some(broker) => broker::text(values, broker),
        None => issuer(values),
    };
    let scopes = list(values.scopes.iter().map(String::as_str));
    let _ = writeln!(
        text,
        "\n[[resource]]\n# The path that clients use: {}\nendpoint = {}\n{SCOPES}scopes_supported = {scopes}\nrequired_scopes = \
         {scopes}\n{UPSTREAM}upstream = {{ http = {} }}",
        values.resource(),
        quoted(&values.endpoint),
        quoted(&values.upstream),
    );
    if values.sessions_off {
        text += SESSIONS_OFF;
    }
    text
}

/// Returns `[[issuer]]` with its comments.
fn issuer(values: &Values) -> String {
    let issuer = values
        .issuer
        .as_ref()
        .map_or(UNKNOWN_ISSUER, |issuer| issuer.as_str());
    let mut text = format!("{ISSUER}issuer = {}\n", quoted(issuer));
    if !values.algorithms.is_empty() {
        let names = list(values.algorithms.iter().map(|algorithm| algorithm.as_str()));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# The signature algorithms of its keys.\nalgorithms = {names}"
        );
    }
    if let Some(provider) = values.issuer.as_ref().and_then(provider::of) {
        text += &provider.comment(&values.resource());
    }
    text
}

const HEAD: &str = "\
# Written by `portcullis init`. All options: docs/use/configuration-keys.md
# `portcullis check --online` tests this file, and `portcullis serve` starts the server.
# `portcullis config-schema > portcullis.schema.json` lets editors complete it, if the first line here is then
# #:schema ./portcullis.schema.json

# What clients use: scheme, host and port. Metadata and accepted audiences follow from it.
";
const ISSUER: &str = "
[[issuer]]
# The authorization server whose tokens are accepted, byte for byte as `iss` in them.
";
const SCOPES: &str = "\
# The scopes that clients ask for, and those that every token must have.
";
const UPSTREAM: &str = "\
# The MCP server. Let nothing else reach it: it trusts the X-Portcullis-* headers (docs/guides/upstream.md).
";
const SESSIONS_OFF: &str = "\
# The MCP server assigns no session identifiers, so this server assigns none either.
sessions = \"off\"
";

/// Returns the setting `listen` with comments that explain it.
fn listen(values: &Values) -> String {
    let listen = quoted(&values.listen.to_string());
    let has_proxy = !values.trusted_proxies.is_empty();
    if !values.is_https() && !values.is_listen_given && !has_proxy {
        return format!("# The address and port of this server.\nlisten = {listen}\n");
    }
    let tls = if values.is_https() {
        "; the proxy terminates TLS. Without a proxy, set the address of the\n# network and add [tls] with certificates and key"
    } else {
        ""
    };
    let proxies = list(values.trusted_proxies.iter().map(String::as_str));
    let proxies = match has_proxy {
        true => format!("# traefik.md):\ntrusted_proxies = {proxies}\n"),
        false => "# traefik.md). Uncomment it if there is a proxy:\n# trusted_proxies = [\"127.0.0.1\"]\n".to_owned(),
    };
    format!(
        "# The address that the proxy in front connects to{tls}.\n\
         listen = {listen}\n\
         # The address of the proxy, so that limits and logs have the address of the client (docs/guides/nginx.md, caddy.md,\n\
         {proxies}"
    )
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A TOML array of strings.
fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use portcullis_jose::Algorithm;
    use portcullis_metadata::Issuer;

    use super::*;
    use portcullis_config::plan::Plan;

    use crate::init::answers::Answers;

    fn issuer(text: &str) -> Issuer {
        Issuer::parse(text).unwrap()
    }

    fn assert_valid(text: &str) {
        let config =
            portcullis_config::from_text(text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
        Plan::new(&config)
            .map(drop)
            .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    }

    /// The text, in which the setting in a comment that starts with `key` is switched on.
    fn uncommented(text: &str, key: &str) -> String {
        let commented = format!("# {key} = ");
        let plain = format!("{key} = ");
        assert_eq!(text.matches(&commented).count(), 1, "{key}\n{text}");
        text.replace(&commented, &plain)
    }

    /// Every branch is valid, and so are the settings in comments.
    #[test]
    fn every_branch_is_valid() {
        let mut answers = Answers::default();
        assert_valid(&text(answers.values()));
        assert!(!text(answers.values()).contains("trusted_proxies"));
        answers.set_base_url("https://mcp.example.com").unwrap();
        answers
            .set_scopes(["mcp:tools", "mcp:admin mcp:tools"])
            .unwrap();
        answers
            .set_issuer(
                issuer("https://auth.example.com/"),
                vec![Algorithm::Rs256, Algorithm::Es256],
            )
            .unwrap();
        answers.set_sessions_off(true);
        let written = text(answers.values());
        assert_valid(&written);

        for line in [
            "listen = \"127.0.0.1:3000\"",
            "issuer = \"https://auth.example.com/\"",
            "algorithms = [\"RS256\", \"ES256\"]",
            "required_scopes = [\"mcp:tools\", \"mcp:admin\"]",
            "sessions = \"off\"",
            "upstream = { http = \"http://127.0.0.1:8000/mcp\" }",
        ] {
            assert!(
                written.lines().any(|other| other == line),
                "{line}\n{written}"
            );
        }
        assert_valid(&uncommented(&written, "trusted_proxies"));
        answers
            .set_trusted_proxies(&["10.0.0.7".to_owned(), "10.1.0.0/16".to_owned()])
            .unwrap();
        let written = text(answers.values());
        assert_valid(&written);
        assert!(
            written.contains("\ntrusted_proxies = [\"10.0.0.7\", \"10.1.0.0/16\"]\n"),
            "{written}"
        );
    }

    /// The settings for providers are valid when they are switched on.
    #[test]
    fn settings_for_providers_are_valid() {
        for (url, key) in [
            (
                "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0",
                Some("audiences"),
            ),
            (
                "https://sts.windows.net/aaaabbbb-0000-cccc-1111-dddd2222eeee/",
                Some("audiences"),
            ),
            ("https://example.eu.auth0.com/", Some("scope_claims")),
            ("https://example.okta.com/oauth2/default", None),
            ("https://auth.example.com/realms/prod", None),
            ("https://auth.example.com/application/o/mcp/", None),
        ] {
            let mut answers = Answers::default();
            answers.set_issuer(issuer(url), Vec::new()).unwrap();
            let written = text(answers.values());
            assert!(
                written.contains("docs/guides/") || written.contains("docs/use/keycloak.md"),
                "{written}"
            );
            assert_valid(&written);
            key.into_iter()
                .for_each(|key| assert_valid(&uncommented(&written, key)));
        }
    }

    /// An issuer whose tokens cannot be validated is rejected with the remedy.
    #[test]
    fn unusable_issuers_are_rejected() {
        for (url, remedy) in [
            ("https://accounts.google.com", "init --broker-kind google"),
            ("https://github.com", "init --broker-kind github"),
            ("https://example.okta.com", "init --broker"),
        ] {
            let reason = Answers::default()
                .set_issuer(issuer(url), Vec::new())
                .unwrap_err();
            assert!(reason.contains(remedy), "{reason}");
        }
    }

    /// A value cannot end its string and add settings.
    #[test]
    fn values_stay_in_their_strings() {
        let values = Values {
            upstream: "http://127.0.0.1:8000/\"'}\nlisten = \"0.0.0.0:1".to_owned(),
            scopes: vec!["a\"]\nauth = \"none".to_owned()],
            ..Values::default()
        };
        let parsed: toml::Table = toml::from_str(&text(&values)).unwrap();
        assert_eq!(
            parsed["resource"][0]["upstream"]["http"].as_str(),
            Some(values.upstream.as_str())
        );
        assert_eq!(
            parsed["resource"][0]["required_scopes"][0].as_str(),
            Some(values.scopes[0].as_str())
        );
        assert_eq!(parsed["listen"].as_str(), Some("127.0.0.1:3000"));
    }

    #[test]
    fn lines_are_short() {
        let mut answers = Answers::default();
        answers.set_base_url("https://mcp.example.com").unwrap();
        answers.set_sessions_off(true);
        assert!(
            text(answers.values()).lines().all(|line| line.len() <= 120),
            "{}",
            text(answers.values())
        );
    }
}
