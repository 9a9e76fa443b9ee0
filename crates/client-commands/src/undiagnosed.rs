//! [`with_doctor`]: the command that finds the cause, in errors of requests.

use std::fmt;

use portcullis_client::{ClientError, StartUrl, error_chain};
use portcullis_mcp_client::McpError;
use portcullis_terminal::{advice, shell_word};

/// An error whose cause `portcullis doctor` can find.
#[derive(Debug)]
struct Undiagnosed {
    /// With its causes and advice.
    text: String,
    /// The quoted URL for the command.
    url: String,
}

/// Adds the command that examines the server to the end of an error's text, if the server cannot be
/// reached or sends another response than clients expect. Other errors are returned as they are.
pub(crate) fn with_doctor(error: anyhow::Error, url: &str) -> anyhow::Error {
    let (true, Ok(start)) = (error.chain().any(is_of_server), StartUrl::parse(url)) else {
        return error;
    };
    Undiagnosed {
        text: error_chain(&*error) + &advice(&*error),
        url: shell_word(&start.to_string()),
    }
    .into()
}

fn is_of_server(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_endpoint = error.downcast_ref().is_some_and(|error| match error {
        // Otherwise the server says when to try again.
        McpError::Unauthorized { retry_after } | McpError::Status { retry_after, .. } => {
            retry_after.delay().is_none()
        }
        McpError::Unreachable { .. }
        | McpError::Fetch(_)
        | McpError::Redirected(_)
        | McpError::UnexpectedContent { .. }
        | McpError::InvalidResponse => true,
        _ => false,
    });
    let of_chain = error.downcast_ref().is_some_and(|error| {
        matches!(
            error,
            ClientError::Resource { .. }
                | ClientError::Redirected(_)
                | ClientError::NotChallenged { .. }
                | ClientError::Discovery(_)
        )
    });
    of_endpoint || of_chain
}

impl fmt::Display for Undiagnosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, url } = self;
        write!(f, "{text}; `portcullis doctor {url}` names what to change")
    }
}

impl std::error::Error for Undiagnosed {}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use portcullis_discovery::{DiscoveryError, FetchError, NetworkFailure};

    use super::*;

    /// J8: the error of a request ends with the command to run, after its causes and advice.
    #[test]
    fn errors_of_the_server_name_the_command() {
        let unreachable = McpError::Unreachable {
            url: "https://mcp.example.com/mcp".to_owned(),
            error: FetchError::network(NetworkFailure::Resolve),
        };
        let mismatch = ClientError::Discovery(DiscoveryError::ResourceMismatch {
            requested: "http://localhost:3000/mcp".to_owned(),
            found: "http://127.0.0.1:3000/mcp".to_owned(),
        });
        for (error, words) in [
            (
                anyhow::Error::from(unreachable),
                &["cannot reach", "HTTPS_PROXY"][..],
            ),
            (
                anyhow::Error::from(mismatch).context("a hint"),
                &[
                    "a hint: cannot find",
                    "use the URL http://127.0.0.1:3000/mcp",
                ],
            ),
        ] {
            let text = with_doctor(error, "https://mcp.example.com/mcp?key=hush").to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            let end = "; `portcullis doctor https://mcp.example.com/mcp` names what to change";
            assert!(text.ends_with(end), "{text}");
            assert!(!text.contains("hush"), "{text}");
        }
        for other in [
            anyhow!("PARAMS is not JSON"),
            McpError::InvalidParams.into(),
            ClientError::TooManySignIns.into(),
        ] {
            let text = format!("{other:#}");
            assert_eq!(
                format!("{:#}", with_doctor(other, "https://mcp.example.com/mcp")),
                text
            );
        }
    }
}
