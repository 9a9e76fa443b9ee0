//! [`remedy`]: the command or option for an error of the client.

use std::error::Error;

use portcullis_client::{
    ClientError, InteractionError, UnsupportedServer, provider::AuthorizeParameterError,
    store::StoreError,
};
use portcullis_discovery::DiscoveryError;

use super::login_command;

/// Returns the end of an error's sentence that names a command or an option of the program, with
/// its punctuation. Empty if there is none.
///
/// The first error of the client among the error and its sources decides.
pub fn remedy(error: &(dyn Error + 'static)) -> String {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(remedy) = of_client(current) {
            return remedy;
        }
        next = current.source();
    }
    String::new()
}

fn of_client(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return for_client(error);
    }
    if let Some(DiscoveryError::ResourceMismatch { found, .. }) = error.downcast_ref() {
        return Some(format!(
            "; if that is the server's address, use the URL {found}"
        ));
    }
    let text = if let Some(error) = error.downcast_ref::<StoreError>() {
        for_store(error)?
    } else if let Some(error) = error.downcast_ref::<InteractionError>() {
        for_interaction(error)?
    } else if let Some(error) = error.downcast_ref::<UnsupportedServer>() {
        for_server(*error)?
    } else if let Some(AuthorizeParameterError::Reserved { .. }) = error.downcast_ref() {
        " (scopes: --scope; without `resource`: --no-resource)"
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn for_client(error: &ClientError) -> Option<String> {
    let text = match error {
        ClientError::BroaderResource { .. } => {
            ". If that is acceptable, run `portcullis login` for this URL in a terminal, or give --accept-broader-resource"
        }
        ClientError::UnboundToken { .. } => {
            ". If these are scopes of that server, run `portcullis login` for this URL in a terminal, or give \
             --accept-unbound-token"
        }
        ClientError::RegistrationLacksScopes { registration } => {
            let command = login_command(&registration.start, &registration.scopes);
            return Some(format!(
                ". To register again, which starts a new session, run `{command}`"
            ));
        }
        ClientError::ClientOfOtherServer { named, .. } => {
            let text = format!(
                ". If the resource has moved to that server, give --authorization-server {named}"
            );
            return Some(text);
        }
        ClientError::TooManySignIns => {
            ". Check the server with `portcullis doctor --login`; `portcullis login` signs in again"
        }
        ClientError::DeviceFlowNotSupported { .. } => "; sign in without --device",
        ClientError::UnsupportedServer(error) => for_server(*error)?,
        ClientError::Interaction(error) => for_interaction(error)?,
        ClientError::Store(error) => for_store(error)?,
        _ => return None,
    };
    Some(text.to_owned())
}

/// The texts of these errors end with "name another directory".
fn for_store(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::NotWritable { .. }
        | StoreError::ExposedDirectory { .. }
        | StoreError::OtherOwner { .. } => Some(" with --store"),
        _ => None,
    }
}

fn for_interaction(error: &InteractionError) -> Option<&'static str> {
    match error {
        InteractionError::NoBrowser => Some(
            "; run `portcullis login --no-browser` for this URL in a terminal: it prints the URL and waits. Or use --device to \
             sign in with another device, if the server supports it, or --auto-consent at a development server that was started \
             with it (`portcullis idp --auto-consent`, `portcullis demo --auto-consent`)",
        ),
        InteractionError::UserRequired { .. } => Some(
            ", and --auto-consent is for development servers that were started with it (`portcullis idp --auto-consent`, `portcullis demo --auto-consent`); run \
             the command without --auto-consent to sign in in a browser, or `portcullis login --no-browser`, or, if the server \
             supports it, `portcullis login --device` for a browser on another device",
        ),
        _ => None,
    }
}

fn for_server(error: UnsupportedServer) -> Option<&'static str> {
    match error {
        UnsupportedServer::PkceNotAdvertised => {
            Some("; if its documentation says that it supports PKCE with S256, give --assume-pkce")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, path::PathBuf};

    use portcullis_client::{StartUrl, error_chain};
    use portcullis_metadata::{Issuer, ResourceUri, Scopes};

    use super::*;

    /// J8: with its remedy, an error of the client is one sentence that names the command or the
    /// option.
    #[test]
    fn an_error_and_its_remedy_are_one_text() {
        let issuer = Issuer::parse("https://auth.example.com").unwrap();
        let start = StartUrl::parse("https://mcp.example.com/mcp").unwrap();
        let path = PathBuf::from("/home/alice/store");
        for (error, expected) in [
            (
                ClientError::BroaderResource {
                    start: start.clone(),
                    resource: ResourceUri::parse("https://mcp.example.com/").unwrap(),
                },
                "https://mcp.example.com/mcp is part of the resource https://mcp.example.com/: a token for it is also valid for \
                 the other paths there, and the server at https://mcp.example.com/mcp could use it for them. If that is \
                 acceptable, run `portcullis login` for this URL in a terminal, or give --accept-broader-resource",
            ),
            (
                ClientError::UnboundToken {
                    start,
                    issuer: issuer.clone(),
                    scopes: Scopes::parse("a").unwrap(),
                },
                "the token request to https://auth.example.com does not name https://mcp.example.com/mcp, so only the scopes \
                 limit where the token is valid: a. If these are scopes of that server, run `portcullis login` for this URL in \
                 a terminal, or give --accept-unbound-token",
            ),
            (
                ClientError::ClientOfOtherServer {
                    client_id: "me".into(),
                    known: issuer.clone(),
                    named: issuer.clone(),
                },
                "the client me belongs to the authorization server https://auth.example.com, but the resource now names \
                 https://auth.example.com; nothing was sent there. If the resource has moved to that server, give \
                 --authorization-server https://auth.example.com",
            ),
            (
                ClientError::TooManySignIns,
                "3 sign-ins within 10 min led to no request that the server accepted, so no further one is started. Check the \
                 server with `portcullis doctor --login`; `portcullis login` signs in again",
            ),
            (
                ClientError::DeviceFlowNotSupported { issuer },
                "the authorization server https://auth.example.com does not support the device flow; sign in without --device",
            ),
            (
                InteractionError::NoBrowser.into(),
                "no browser can be opened on this machine, and there is no terminal in which a user could read the \
                 authorization URL; run `portcullis login --no-browser` for this URL in a terminal: it prints the URL and waits. \
                 Or use --device to sign in with another device, if the server supports it, or --auto-consent at a development \
                 server that was started with it (`portcullis idp --auto-consent`, `portcullis demo --auto-consent`)",
            ),
            (
                InteractionError::UserRequired {
                    status: http::StatusCode::OK,
                }
                .into(),
                "the authorization endpoint requires a user (status 200 OK), and --auto-consent is for development servers that \
                 were started with it (`portcullis idp --auto-consent`, `portcullis demo --auto-consent`); run the command without --auto-consent to sign in in \
                 a browser, or `portcullis login --no-browser`, or, if the server supports it, `portcullis login --device` for a \
                 browser on another device",
            ),
            (
                UnsupportedServer::PkceNotAdvertised.into(),
                "the authorization server's metadata does not list PKCE methods (code_challenge_methods_supported is missing); \
                 if its documentation says that it supports PKCE with S256, give --assume-pkce",
            ),
            (
                StoreError::NotWritable {
                    path: path.clone(),
                    kind: ErrorKind::StorageFull,
                }
                .into(),
                "cannot write the credential file /home/alice/store: no storage space; free space or correct the permissions, or \
                 name another directory with --store",
            ),
            (
                StoreError::ExposedDirectory {
                    path: path.clone(),
                    mode: 0o755,
                }
                .into(),
                "other users of this machine can access the credential store /home/alice/store (mode 0755); run `chmod 700 \
                 /home/alice/store` if you trust its files, or name another directory with --store",
            ),
            (
                StoreError::OtherOwner {
                    path,
                    owner: 1,
                    user: 2,
                }
                .into(),
                "/home/alice/store belongs to user 1, and this program runs as user 2; run `chown 2 /home/alice/store` if you \
                 trust it, or name another directory with --store",
            ),
            (
                ClientError::Discovery(DiscoveryError::ResourceMismatch {
                    requested: "http://localhost:3000/mcp".into(),
                    found: "http://127.0.0.1:3000/mcp".into(),
                }),
                "cannot find the authorization server of the resource: the metadata is for the resource \
                 http://127.0.0.1:3000/mcp, not for http://localhost:3000/mcp; if that is the server's address, use the URL \
                 http://127.0.0.1:3000/mcp",
            ),
            (
                ClientError::NoAuthorizationServer,
                "the resource lists no authorization server",
            ),
        ] {
            assert_eq!(error_chain(&error) + &remedy(&error), expected);
        }
        let reserved =
            portcullis_client::provider::AuthorizeParameter::parse("scope=a").unwrap_err();
        assert_eq!(
            reserved.to_string() + &remedy(&reserved),
            "`scope` is a parameter of the protocol; it cannot be set (scopes: --scope; without `resource`: --no-resource)"
        );
    }
}
