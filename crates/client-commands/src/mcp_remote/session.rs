//! [`SessionId`]: the identifier under which mcp-remote stores the credentials of a server, and the
//! port derived from it.

use std::collections::BTreeMap;

use md5::{Digest as _, Md5};
use portcullis_metadata::syntax::hexadecimal;

use super::arguments::{Arguments, header};

/// MD5 of everything that distinguishes two sign-ins in mcp-remote 0.15.1. It is part of file names
/// and not a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionId(String);

impl SessionId {
    /// The identifier for arguments and the lines of their header files. Variables in headers are
    /// not replaced.
    pub(crate) fn of(arguments: &Arguments, headers: &[(String, String)]) -> Self {
        let mut parts = vec![arguments.url().to_owned()];
        parts.extend(resource(arguments).map(str::to_owned));
        parts.extend(object(
            arguments
                .options("--authorize-param")
                .filter_map(authorize_parameter),
        ));
        parts.extend(object(
            headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        ));
        parts.extend(client_metadata_url(arguments).map(str::to_owned));
        if let Some(endpoint) = arguments
            .option("--token-endpoint")
            .and_then(|it| url::Url::parse(it.trim()).ok())
        {
            parts.push(endpoint.into());
        }
        Self(hexadecimal(&Md5::digest(parts.join("|"))))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The callback port of mcp-remote if the arguments have none: a client may be registered with
    /// it.
    pub(crate) fn port(&self) -> u16 {
        let offset = self
            .0
            .get(..4)
            .and_then(|start| u32::from_str_radix(start, 16).ok())
            .unwrap_or_default();
        u16::try_from(3335 + offset % 45816).unwrap_or(3335)
    }
}

/// The `resource` parameter that replaces the server's own.
pub(crate) fn resource(arguments: &Arguments) -> Option<&str> {
    let resource = arguments
        .option("--resource")
        .map(str::trim)
        .filter(|resource| !resource.is_empty());
    resource.filter(|_| !arguments.has("--disable-resource-parameter"))
}

/// Whether requests have no `resource` parameter.
pub(crate) fn omits_resource(arguments: &Arguments) -> bool {
    arguments.has("--disable-resource-parameter")
        || arguments
            .option("--resource")
            .is_some_and(|resource| resource.trim().is_empty())
}

/// An additional parameter of the authorization request.
pub(crate) fn authorize_parameter(text: &str) -> Option<(&str, &str)> {
    text.split_once('=')
        .map(|(name, value)| (name.trim(), value))
        .filter(|(name, _)| !name.is_empty())
}

/// The URL of the client's metadata document, unless mcp-remote would ignore it.
pub(crate) fn client_metadata_url(arguments: &Arguments) -> Option<&str> {
    let text = arguments.option("--client-metadata-url")?.trim();
    let url = url::Url::parse(text).ok()?;
    (url.scheme() == "https" && url.path() != "/").then_some(text)
}

/// The headers of the arguments and of header files. If a name is repeated, the last value applies.
pub(crate) fn headers(texts: impl IntoIterator<Item = String>) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for text in texts {
        let Some((name, value)) = header(&text) else {
            continue;
        };
        match headers.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => headers.push((name.to_owned(), value.to_owned())),
        }
    }
    headers
}

/// A JSON object with sorted members. None if it is empty.
fn object<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let members: BTreeMap<_, _> = members.collect();
    if members.is_empty() {
        None
    } else {
        serde_json::to_string(&members).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(texts: &[&str]) -> SessionId {
        let arguments = Arguments::parse(texts.iter().copied()).unwrap();
        let headers = headers(arguments.options("--header").map(str::to_owned));
        SessionId::of(&arguments, &headers)
    }

    /// The values were computed with mcp-remote 0.15.1.
    #[test]
    fn identifiers_are_those_of_mcp_remote() {
        let url = "https://mcp.example.com/mcp";
        let with_resource = id(&[url, "--resource", "https://tenant.example.com/"]);
        let header = "X-Team: blue \"é\"";
        let parameters = [
            "--authorize-param",
            "prompt=consent",
            "--authorize-param",
            "access_type=offline",
        ];
        let document = ["--client-metadata-url", "https://client.example.com/doc"];
        let headers = [
            "--header", "A: lost", "--header", header, "--header", "A: ${B}",
        ];
        let all = id(&[&[url][..], &parameters, &document, &headers].concat());
        for (id, expected, port) in [
            (
                id(&[url, "--debug"]),
                "94baabe3c3fadb285b26c035e4e86046",
                41409,
            ),
            (with_resource, "3113537ff04d9c50e2404a697a66080e", 15898),
            (all, "192afc7c9ab10c715489164051a4ced3", 9777),
        ] {
            assert_eq!(id.as_str(), expected);
            assert_eq!(id.port(), port);
        }
        let disabled = id(&[
            url,
            "--resource",
            "https://tenant.example.com/",
            "--disable-resource-parameter",
        ]);
        assert_eq!(disabled, id(&[url]));
    }
}
