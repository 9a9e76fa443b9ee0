//! Which clients may ask users to sign in.

use std::{net::Ipv6Addr, num::NonZeroU16};

use anyhow::{Context as _, ensure};
use portcullis_authorization_server::client::RedirectHost;
use portcullis_broker::ClientSettings;
use url::Host;

use crate::{Diagnostics, file::BrokerClients, shown_url};

/// The most hosts of redirect URIs.
const MAX_HOSTS: usize = 256;
/// The largest `max_registered`.
const MAX_REGISTERED: usize = 1_000_000;

/// Validates the table. Adds an error for each invalid value, and returns `None` if there is one.
pub(super) fn plan(
    configured: &BrokerClients,
    errors: &mut Diagnostics<'_>,
) -> Option<ClientSettings> {
    let hosts = errors.take_all(
        "redirect_hosts",
        configured.redirect_hosts.iter().map(|text| host(text)),
    );
    let checks = [
        errors.take("redirect_hosts", check_count(&configured.redirect_hosts)),
        errors.take("max_registered", check_max_registered(configured)),
        errors.take("", check_identification(configured)),
    ];
    checks.into_iter().collect::<Option<Vec<()>>>()?;
    Some(ClientSettings {
        redirect_hosts: hosts?,
        registration: configured.registration,
        documents: configured.documents,
        max_registered: configured.max_registered,
    })
}

/// Parses a host, or `*.` and a host for its subdomains, with an optional port. Returns it in
/// lower-case ASCII.
fn host(text: &str) -> anyhow::Result<Box<str>> {
    let shown = shown_url(text);
    ensure!(
        text != "*",
        "redirect_hosts has \"*\", with which every website could get codes of your users; list the hosts of the clients"
    );
    let (prefix, name) = match text.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", text),
    };
    ensure!(
        !name.contains("://") && !name.contains(['/', '?', '#', '@']),
        "redirect_hosts has {shown:?}, which is more than a host; remove scheme and path"
    );
    ensure!(
        name.trim_matches(['[', ']']).parse::<Ipv6Addr>().is_err(),
        "redirect_hosts has {shown:?}, which is an address; write the name of the host"
    );
    ensure!(
        !name.starts_with('.'),
        "redirect_hosts has {shown:?}, which begins with a dot; write \"*{name}\" for all subdomains, or remove the dot"
    );
    let (name, port) = split_port(name).with_context(|| {
        format!("redirect_hosts has {shown:?}, and what follows the colon is not a port from 1 to 65535; without a port, it is 443")
    })?;
    ensure!(
        !name.contains('*'),
        "redirect_hosts has {shown:?}; a star stands only for all subdomains, as in \"*.example.com\""
    );
    let parsed = Host::parse(name).with_context(|| {
        format!("redirect_hosts has {shown:?}, which is not the name of a host; write one such as \"app.example.com\"")
    })?;
    let Host::Domain(name) = parsed else {
        anyhow::bail!(
            "redirect_hosts has {shown:?}, which is an address; write the name of the host"
        );
    };
    // Parsing decodes escapes, and maps other characters to ASCII.
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    ensure!(
        name.bytes().all(is_in_name),
        "redirect_hosts has {shown:?}, which is not the name of a host; write one such as \"app.example.com\""
    );
    ensure!(
        prefix.is_empty() || name.trim_matches('.').contains('.'),
        "redirect_hosts has {shown:?}, which includes hosts of others; add the rest of the name, as in \"*.example.com\""
    );
    ensure!(
        !name.ends_with('.'),
        "redirect_hosts has {shown:?}, which ends with a dot; remove it"
    );
    let accepted = match port {
        Some(port) => format!("{prefix}{name}:{port}"),
        None => format!("{prefix}{name}"),
    };
    RedirectHost::parse(&accepted).with_context(|| {
        format!("redirect_hosts has {shown:?}, which is not the name of a host")
    })?;
    Ok(accepted.into())
}

/// Splits the port off a host, if it has one. `None` if what follows the colon is not a port.
fn split_port(text: &str) -> Option<(&str, Option<NonZeroU16>)> {
    let Some((name, port)) = text.split_once(':') else {
        return Some((text, None));
    };
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| is_number)?;
    Some((name, Some(port)))
}

fn check_count(hosts: &[String]) -> anyhow::Result<()> {
    ensure!(
        hosts.len() <= MAX_HOSTS,
        "redirect_hosts has {} entries; remove all but {MAX_HOSTS}, or write \"*.\" and a name for its subdomains",
        hosts.len()
    );
    Ok(())
}

fn check_max_registered(configured: &BrokerClients) -> anyhow::Result<()> {
    let count = configured.max_registered;
    ensure!(
        (1..=MAX_REGISTERED).contains(&count),
        "max_registered = {count} is outside 1 to {MAX_REGISTERED}; write registration = false to register none"
    );
    Ok(())
}

fn check_identification(configured: &BrokerClients) -> anyhow::Result<()> {
    ensure!(
        configured.registration || configured.documents,
        "registration and documents are both false, so that no client can be identified; remove one"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RG2: names and stars for subdomains are accepted, in the form in which URLs have them.
    #[test]
    fn hosts_are_normalized() {
        for (text, expected) in [
            ("app.example.com", "app.example.com"),
            ("App.Example.COM", "app.example.com"),
            ("*.Example.com", "*.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("intranet", "intranet"),
        ] {
            assert_eq!(&*host(text).unwrap(), expected);
        }
    }

    /// RG2: a pattern that includes hosts of others, or is more than a host, is rejected.
    #[test]
    fn wide_patterns_are_rejected() {
        for text in [
            "",
            "*",
            "*.",
            "*.*",
            "*.com",
            "*.com.",
            "*example.com",
            "a.*.example.com",
            "**.example.com",
            "%2a.example.com",
            "\u{ff0a}.example.com",
            "https://app.example.com",
            "//app.example.com",
            "app.example.com/",
            "app.example.com:",
            "app.example.com:0",
            "app.example.com:+443",
            "app.example.com:65536",
            "app.example.com:443:443",
            ".example.com",
            "*..example.com",
            "a..example.com",
            "me@app.example.com",
            "app.example.com.",
            "app example.com",
            "127.0.0.1",
            "0x7f.1",
            "[::1]",
            "*.127.0.0.1",
        ] {
            assert!(host(text).is_err(), "{text}: {:?}", host(text));
        }
    }

    proptest! {
        /// RG2: an accepted entry is a plain host or one star and a plain host, and parsing it
        /// again changes nothing.
        #[test]
        fn accepted_hosts_are_plain(text in "(\\*\\.)?[a-zA-Z0-9*.:/@?#%ü-]{0,24}(:[0-9]{1,5})?|\\PC{0,24}") {
            if let Ok(accepted) = host(&text) {
                prop_assert!(RedirectHost::parse(&accepted).is_ok());
                let name = accepted.strip_prefix("*.").unwrap_or(&accepted);
                let name = name.split(':').next().unwrap_or_default();
                prop_assert_eq!(accepted.starts_with("*."), text.starts_with("*."));
                prop_assert!(!name.is_empty() && !name.contains(['*', '/', '@', '?', '#', '%']));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
                prop_assert_eq!(&*host(&accepted).unwrap(), &*accepted);
            }
        }
    }
}
