//! [`Proxies`]: which requests go through an egress proxy.

use portcullis_metadata::is_loopback;
use url::Url;

use super::error::FetchSettingsError;

mod no_proxy;

use no_proxy::NoProxy;

/// The egress proxy and the hosts that are reached without it. Loopback hosts always are.
///
/// Only `https` requests can go elsewhere than to loopback, so that `http_proxy` has no use here. `HTTP_PROXY` is not read
/// in particular: in a CGI program it is the `Proxy` header of a request.
pub(crate) struct Proxies {
    proxy: Proxy,
    exceptions: NoProxy,
}

enum Proxy {
    None,
    Url(Url),
    /// The variable with this name cannot be used.
    Invalid(&'static str),
}

/// The variables that name the proxy, the first that is set and not empty counts. As for curl, a name in lower case comes
/// before the same name in upper case, and the one for the scheme before the one for all schemes.
const PROXY_VARIABLES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const NO_PROXY_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];

impl Proxies {
    /// No proxy.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { proxy: Proxy::None, exceptions: NoProxy::default() }
    }

    /// One proxy for all hosts except loopback, whatever the environment says.
    pub(crate) fn fixed(url: Url) -> Self {
        Self { proxy: Proxy::Url(url), exceptions: NoProxy::default() }
    }

    /// What the environment variables say.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &&str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let proxy = match PROXY_VARIABLES.iter().find_map(|name| Some((*name, set(name)?))) {
            None => Proxy::None,
            Some((name, text)) => parse(&text).map_or(Proxy::Invalid(name), Proxy::Url),
        };
        let exceptions = NO_PROXY_VARIABLES.iter().find_map(set).map(|text| NoProxy::parse(&text));
        Self { proxy, exceptions: exceptions.unwrap_or_default() }
    }

    /// Whether a request goes through the proxy.
    pub(crate) fn applies_to(&self, url: &Url) -> bool {
        !matches!(self.proxy, Proxy::None) && !is_loopback(url) && !self.exceptions.contains(url)
    }

    /// The proxy, where [`applies_to`](Self::applies_to).
    pub(crate) fn url(&self) -> Result<&Url, FetchSettingsError> {
        match &self.proxy {
            Proxy::Url(url) => Ok(url),
            Proxy::Invalid(variable) => Err(FetchSettingsError::ProxyVariable { variable }),
            Proxy::None => Err(FetchSettingsError::Proxy),
        }
    }
}

/// A proxy without a scheme is an http one, as for curl.
fn parse(text: &str) -> Option<Url> {
    let url = match text.contains("://") {
        true => Url::parse(text),
        false => Url::parse(&format!("http://{text}")),
    };
    url.ok().filter(is_supported)
}

/// Whether this is a URL of a proxy that is supported.
pub(crate) fn is_supported(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_variables(|name| {
            variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn proxy(variables: &[(&str, &str)]) -> Option<String> {
        let proxies = proxies(variables);
        let url = Url::parse("https://auth.example.com/").unwrap();
        proxies.applies_to(&url).then(|| match proxies.url() {
            Ok(url) => url.to_string(),
            Err(error) => error.to_string(),
        })
    }

    /// G6: the variables are read as curl reads them, in both letter cases.
    #[test]
    fn the_variables_of_both_letter_cases() {
        assert_eq!(proxy(&[]), None);
        assert_eq!(proxy(&[("https_proxy", ""), ("HTTPS_PROXY", " ")]), None);
        for name in PROXY_VARIABLES {
            assert_eq!(proxy(&[(name, "proxy.example:3128")]).unwrap(), "http://proxy.example:3128/");
        }
        let all = PROXY_VARIABLES.map(|name| (name, format!("https://{}", name.replace('_', "-").to_lowercase())));
        let all: Vec<_> = all.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for first in 0..all.len() {
            let expected = format!("{}/", all[first].1);
            assert_eq!(proxy(&all[first..]).unwrap(), expected);
        }
        // Headers of a request in a CGI program, and the variable for plain http.
        assert_eq!(proxy(&[("HTTP_PROXY", "http://proxy"), ("http_proxy", "http://proxy")]), None);
    }

    /// G6: a proxy that cannot be used is an error, and the request does not go past it.
    #[test]
    fn an_unusable_proxy_is_named() {
        for value in ["socks5://proxy:1080", "http://", "http://a b", "ftp://proxy"] {
            assert!(proxy(&[("HTTPS_PROXY", value)]).unwrap().starts_with("HTTPS_PROXY is not"), "{value}");
        }
    }

    /// G6: loopback and the hosts of `NO_PROXY` are reached without the proxy.
    #[test]
    fn exceptions_are_reached_directly() {
        for name in NO_PROXY_VARIABLES {
            let proxies = proxies(&[("HTTPS_PROXY", "http://proxy"), (name, "corp.example, 10.0.0.0/8")]);
            for (url, applies) in [
                ("https://auth.example.com/", true),
                ("https://a.corp.example/", false),
                ("https://10.1.1.1/", false),
                ("https://localhost/", false),
                ("https://127.3.2.1/", false),
                ("https://[::1]/", false),
            ] {
                assert_eq!(proxies.applies_to(&Url::parse(url).unwrap()), applies, "{url}");
            }
        }
    }
}
