//! Failures of the connection to Redis, and their texts for the log.

use std::{error::Error as _, io};

use portcullis_metadata::EscapedText;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// The maximum length of the text of another program, in characters.
const MAX_TEXT: usize = 200;

/// Returns an error of the connection.
pub(crate) fn io_error(kind: io::ErrorKind) -> RedisError {
    io::Error::from(kind).into()
}

/// Returns why Redis cannot be used. Text of the server is escaped and at most 200 characters long.
pub(crate) fn describe(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::AuthenticationFailed => "it rejects the user or the password".to_owned(),
        ErrorKind::RESP3NotSupported => "it is older than version 6.2".to_owned(),
        ErrorKind::Server(ServerErrorKind::NoPerm) => {
            format!(
                "the user lacks a permission: {}",
                escaped(error.detail().unwrap_or_default())
            )
        }
        ErrorKind::Server(ServerErrorKind::ReadOnly) => {
            "it is a read-only replica of another server; name the primary".to_owned()
        }
        ErrorKind::Server(
            ServerErrorKind::Moved | ServerErrorKind::ClusterDown | ServerErrorKind::CrossSlot,
        ) => "it is a cluster, which is not supported".to_owned(),
        ErrorKind::Io => error.source().map_or_else(
            || escaped(&error.to_string()),
            |cause| escaped(&cause.to_string()),
        ),
        _ => match error.code() {
            Some("NOAUTH" | "WRONGPASS") => "it rejects the user or the password".to_owned(),
            _ => escaped(&error.to_string()),
        },
    }
}

fn escaped(text: &str) -> String {
    EscapedText::first(text, MAX_TEXT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E13: the log names the reason, and no text of the server can break its lines.
    #[test]
    fn reasons_are_named() {
        assert_eq!(
            describe(&io_error(io::ErrorKind::ConnectionRefused)),
            "connection refused"
        );
        let rejected = "it rejects the user or the password";
        let cluster = "it is a cluster, which is not supported";
        for (kind, described) in [
            (ErrorKind::AuthenticationFailed, rejected),
            (ErrorKind::RESP3NotSupported, "it is older than version 6.2"),
            (
                ErrorKind::Server(ServerErrorKind::NoPerm),
                r"the user lacks a permission: some\u{a}text",
            ),
            (
                ErrorKind::Server(ServerErrorKind::ReadOnly),
                "it is a read-only replica of another server; name the primary",
            ),
            (ErrorKind::Server(ServerErrorKind::Moved), cluster),
            (ErrorKind::Server(ServerErrorKind::ClusterDown), cluster),
            (ErrorKind::Server(ServerErrorKind::CrossSlot), cluster),
        ] {
            assert_eq!(
                describe(&RedisError::from((kind, "failed", "some\ntext".to_owned()))),
                described
            );
        }
        let endless =
            RedisError::from((ErrorKind::Client, "odd", format!("\n{}", "x".repeat(999))));
        let described = describe(&endless);
        assert!(!described.contains('\n'), "{described}");
        assert!(described.len() < 2 * MAX_TEXT, "{described}");
    }
}
