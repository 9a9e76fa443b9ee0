//! [`Proxies`]: which requests use an egress proxy.

use portcullis_metadata::syntax::is_loopback;
use url::Url;

use super::settings_error::FetchSettingsError;

mod no_proxy;

use no_proxy::NoProxy;

/// The egress proxy, and the hosts that are requested without it. Loopback hosts always are.
///
/// `http` requests are allowed only to loopback, so `http_proxy` is not read. `HTTP_PROXY` is also
/// unsafe: in a CGI program it contains the `Proxy` header of a request.
pub(crate) struct Proxies {
    proxy: Proxy,
    exceptions: NoProxy,
}

enum Proxy {
    None,
    /// The proxy with this URL.
    Url(Url),
    /// The variable with this name cannot be used.
    Invalid(&'static str),
}

/// The variables that contain the proxy. The first non-empty one is used. As in curl, lower case
/// precedes upper case, and the variables for the scheme precede those for all schemes.
const PROXY_VARIABLES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
/// The variables that contain the exceptions. The first non-empty one is used.
const NO_PROXY_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];

impl Proxies {
    /// Returns no proxy.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            proxy: Proxy::None,
            exceptions: NoProxy::default(),
        }
    }

    /// Returns one proxy for all hosts except loopback. The environment is ignored.
    pub(crate) fn fixed(url: Url) -> Self {
        Self {
            proxy: Proxy::Url(url),
            exceptions: NoProxy::default(),
        }
    }

    /// Reads the proxy and its exceptions from environment variables.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &&str| {
            variable(name)
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        let proxy = match PROXY_VARIABLES
            .iter()
            .find_map(|name| Some((*name, set(name)?)))
        {
            None => Proxy::None,
            Some((name, text)) => parse(&text).map_or(Proxy::Invalid(name), Proxy::Url),
        };
        let exceptions = NO_PROXY_VARIABLES
            .iter()
            .find_map(set)
            .map(|text| NoProxy::parse(&text));
        Self {
            proxy,
            exceptions: exceptions.unwrap_or_default(),
        }
    }

    /// Returns whether a request uses the proxy.
    pub(crate) fn applies_to(&self, url: &Url) -> bool {
        !matches!(self.proxy, Proxy::None) && !is_loopback(url) && !self.exceptions.contains(url)
    }

    /// Returns the proxy of requests to which it [applies](Self::applies_to). Fails with
    /// [`FetchSettingsError::ProxyVariable`] if the environment contains an unusable proxy.
    pub(crate) fn url(&self) -> Result<&Url, FetchSettingsError> {
        match &self.proxy {
            Proxy::Url(url) => Ok(url),
            Proxy::Invalid(variable) => Err(FetchSettingsError::ProxyVariable { variable }),
            Proxy::None => Err(FetchSettingsError::Proxy),
        }
    }
}

/// Parses a proxy URL. As in curl, the default scheme is `http`.
fn parse(text: &str) -> Option<Url> {
    let url = if text.contains("://") {
        Url::parse(text)
    } else {
        Url::parse(&format!("http://{text}"))
    };
    url.ok().filter(is_supported)
}

/// Returns whether this is the URL of a supported proxy.
pub(crate) fn is_supported(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_variables(|name| {
            variables
                .iter()
                .find(|(set, _)| *set == name)
                .map(|(_, value)| (*value).to_owned())
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

    /// G6: the variables are read as in curl, in both letter cases.
    #[test]
    fn the_variables_of_both_letter_cases() {
        assert_eq!(proxy(&[]), None);
        assert_eq!(proxy(&[("https_proxy", ""), ("HTTPS_PROXY", " ")]), None);
        for name in PROXY_VARIABLES {
            assert_eq!(
                proxy(&[(name, "proxy.example:3128")]).unwrap(),
                "http://proxy.example:3128/"
            );
        }
        let all = PROXY_VARIABLES.map(|name| {
            (
                name,
                format!("https://{}", name.replace('_', "-").to_lowercase()),
            )
        });
        let all: Vec<_> = all
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        for first in 0..all.len() {
            let expected = format!("{}/", all[first].1);
            assert_eq!(proxy(&all[first..]).unwrap(), expected);
        }
        // Headers of a request in a CGI program, and the variable for plain http.
        assert_eq!(
            proxy(&[
                ("HTTP_PROXY", "http://proxy"),
                ("http_proxy", "http://proxy")
            ]),
            None
        );
    }

    /// G6: an unusable proxy is an error, and the request is not sent without it.
    #[test]
    fn an_unusable_proxy_is_an_error() {
        for value in [
            "socks5://proxy:1080",
            "http://",
            "http://a b",
            "ftp://proxy",
            "http://prox\u{fffd}y",
        ] {
            assert!(
                proxy(&[("HTTPS_PROXY", value)])
                    .unwrap()
                    .starts_with("HTTPS_PROXY is not"),
                "{value}"
            );
        }
    }

    /// G6: loopback and the hosts of `NO_PROXY` are requested without the proxy.
    #[test]
    fn exceptions_are_requested_directly() {
        for name in NO_PROXY_VARIABLES {
            let proxies = proxies(&[
                ("HTTPS_PROXY", "http://proxy"),
                (name, "corp.example, 10.0.0.0/8"),
            ]);
            for (url, applies) in [
                ("https://auth.example.com/", true),
                ("https://a.corp.example/", false),
                ("https://10.1.1.1/", false),
                ("https://localhost/", false),
                ("https://127.3.2.1/", false),
                ("https://[::1]/", false),
            ] {
                assert_eq!(
                    proxies.applies_to(&Url::parse(url).unwrap()),
                    applies,
                    "{url}"
                );
            }
        }
    }
}
