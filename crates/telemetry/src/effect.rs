/// The prefixes of the codes of failures of the server, the upstream or the client. All other codes
/// are denials.
const FAILURES: [&str; 4] = ["upstream.", "inner.", "client.", "server."];

/// The effect of a decision on its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was forwarded, or answered as permitted.
    Allow,
    /// It was rejected.
    Deny,
    /// It was allowed, and then the upstream, the client or the server failed.
    Fail,
}

impl Effect {
    /// Returns the effect of a decision with this reason code.
    pub fn of(code: Option<&str>) -> Self {
        match code {
            None => Self::Allow,
            Some(code) if FAILURES.iter().any(|failure| code.starts_with(failure)) => Self::Fail,
            Some(_) => Self::Deny,
        }
    }

    /// Returns the word of logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Fail => "fail",
        }
    }
}
