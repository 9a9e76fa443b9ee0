//! [`ServerInfo`]: the response to `INFO server`.

use std::io;

use redis::{RedisResult, Value};

/// What the replica must know about the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerInfo {
    /// Names the server process. A restarted server has another one.
    pub(super) run_id: String,
}

impl ServerInfo {
    /// Parses the response. Fails if the server is a Sentinel or a node of a cluster: it does not
    /// keep the data itself, or does not deliver messages to all subscribers itself. Fails if the
    /// response has no run id.
    pub(super) fn parse(response: &Value) -> RedisResult<Self> {
        let text = match response {
            Value::BulkString(bytes) => str::from_utf8(bytes).unwrap_or_default(),
            Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
            _ => "",
        };
        let field = |name| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
        };
        // The first name is that of Redis, the second one that of Valkey 8.
        match field("redis_mode").or_else(|| field("server_mode")) {
            Some("sentinel") => Err(io::Error::other(
                "it is a Sentinel; name the primary, or a load balancer that leads to it",
            )
            .into()),
            Some("cluster") => Err(io::Error::other(
                "it is a node of a cluster, which is not supported; name a server of its own",
            )
            .into()),
            _ => {
                let run_id = field("run_id").filter(|id| is_run_id(id));
                let run_id =
                    run_id.ok_or_else(|| io::Error::other("its response to INFO has no run id"))?;
                Ok(Self {
                    run_id: run_id.to_owned(),
                })
            }
        }
    }
}

fn is_run_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::{super::super::failure, *};

    fn parse(text: &str) -> Result<String, String> {
        let parsed = ServerInfo::parse(&Value::SimpleString(text.to_owned()));
        parsed
            .map(|info| info.run_id)
            .map_err(|error| failure::describe(&error))
    }

    #[test]
    fn the_run_id_is_found() {
        for (name, text) in [
            (
                "Redis",
                "# Server\r\nredis_version:7\r\nredis_mode:standalone\r\nrun_id:00ff\r\n",
            ),
            ("Valkey", "server_mode:standalone\r\nrun_id:00ff\r\n"),
            ("no mode", "run_id:00ff"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok("00ff"), "{name}");
        }
        let bytes = Value::BulkString(b"run_id:00ff\r\n".to_vec());
        assert_eq!(ServerInfo::parse(&bytes).unwrap().run_id, "00ff");
    }

    #[test]
    fn a_missing_run_id_is_an_error() {
        let long = format!("run_id:{}\r\n", "0".repeat(65));
        for text in ["", "# Server\r\n", "run_id:\r\n", "run_id:a b\r\n", &long] {
            assert!(parse(text).unwrap_err().contains("run id"), "{text}");
        }
        for response in [Value::Nil, Value::BulkString(vec![0xff])] {
            assert!(ServerInfo::parse(&response).is_err(), "{response:?}");
        }
    }

    /// E13: a Sentinel and a node of a cluster are rejected, with the reason.
    #[test]
    fn other_modes_are_rejected() {
        for (text, named) in [
            ("redis_mode:sentinel\r\nrun_id:00ff", "load balancer"),
            ("server_mode:cluster\r\n", "cluster"),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(failure.contains(named), "{failure}");
        }
    }
}
