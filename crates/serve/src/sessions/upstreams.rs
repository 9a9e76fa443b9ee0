//! The upstreams at which sessions end: those of the running configuration, and former ones.

use std::collections::HashMap;

use http::HeaderName;
use portcullis_gateway::HttpUpstream;
use portcullis_session::SessionTarget;
#[cfg(test)]
use {
    portcullis_gateway::{HttpUpstreamSettings, UpstreamAddress},
    portcullis_testkit::ManualClock,
    std::sync::Arc,
};

/// The maximum number of former upstreams. The sessions of older ones are left to their upstreams'
/// timeouts.
const MAX_FORMER: usize = 64;

/// The upstreams at which sessions end, by the targets of the sessions. A session never ends at the
/// upstream of another target.
#[derive(Default)]
pub(crate) struct Upstreams {
    current: HashMap<SessionTarget, SessionUpstream>,
    /// The upstreams of former configurations that the running one does not have, the oldest first.
    former: Vec<(SessionTarget, SessionUpstream)>,
}

/// An upstream, with the header that names its sessions.
#[derive(Clone)]
pub(crate) struct SessionUpstream {
    pub(crate) header: HeaderName,
    /// Called from the control runtime.
    pub(crate) client: HttpUpstream,
}

impl Upstreams {
    pub(super) fn get(&self, target: &SessionTarget) -> Option<&SessionUpstream> {
        let former = || {
            self.former
                .iter()
                .find(|(former, _)| former == target)
                .map(|(_, upstream)| upstream)
        };
        self.current.get(target).or_else(former)
    }

    /// Returns the upstreams after a change of the configuration.
    pub(super) fn followed_by(&self, current: &HashMap<SessionTarget, SessionUpstream>) -> Self {
        let replaced = self
            .current
            .iter()
            .map(|(target, upstream)| (target.clone(), upstream.clone()));
        let mut former: Vec<_> = self.former.iter().cloned().chain(replaced).collect();
        former.retain(|(target, _)| !current.contains_key(target));
        former.drain(..former.len().saturating_sub(MAX_FORMER));
        Self {
            current: current.clone(),
            former,
        }
    }

    /// Returns only the upstreams of the running configuration.
    pub(super) fn without_former(&self) -> Self {
        Self {
            current: self.current.clone(),
            former: Vec::new(),
        }
    }
}

impl SessionUpstream {
    /// Asks the upstream to end one of its sessions.
    pub(super) async fn end(self, backend: &[u8]) {
        let Self { header, client } = self;
        let status = client.end_session(header, backend).await;
        tracing::debug!(
            status = status.as_u16(),
            "the upstream responded to the end of a session"
        );
    }
}

#[cfg(test)]
impl SessionUpstream {
    /// An upstream at which nothing listens.
    pub(super) fn for_tests(header: &str) -> Self {
        let url = "http://127.0.0.1:1/".parse().unwrap();
        let settings = HttpUpstreamSettings::new(UpstreamAddress::Tcp(url));
        let client = HttpUpstream::new(settings, Arc::new(ManualClock::new())).unwrap();
        Self {
            header: header.parse().unwrap(),
            client,
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::ResourceUri;

    use super::*;

    fn configuration(upstreams: &[usize]) -> HashMap<SessionTarget, SessionUpstream> {
        upstreams
            .iter()
            .map(|number| (target(*number), upstream(*number)))
            .collect()
    }

    fn target(number: usize) -> SessionTarget {
        SessionTarget::new(
            ResourceUri::parse("https://r.example/mcp").unwrap(),
            &number.to_string(),
        )
    }

    /// The header tells the upstreams apart.
    fn upstream(number: usize) -> SessionUpstream {
        SessionUpstream::for_tests(&format!("session-{number}"))
    }

    fn header(upstreams: &Upstreams, number: usize) -> Option<&str> {
        upstreams
            .get(&target(number))
            .map(|upstream| upstream.header.as_str())
    }

    /// E9, J10: the sessions of a former upstream end there, and never at the one that replaced it.
    #[test]
    fn former_upstreams_are_kept() {
        let mut upstreams = Upstreams::default().followed_by(&configuration(&[1]));
        assert_eq!(header(&upstreams, 1), Some("session-1"));
        assert_eq!(header(&upstreams, 2), None);
        upstreams = upstreams
            .followed_by(&configuration(&[2]))
            .followed_by(&configuration(&[3]));
        assert_eq!(
            [1, 2, 3].map(|number| header(&upstreams, number)),
            [Some("session-1"), Some("session-2"), Some("session-3")]
        );
        upstreams = upstreams.followed_by(&configuration(&[1]));
        assert_eq!(upstreams.current.len(), 1);
        assert_eq!(upstreams.former.len(), 2);
        upstreams = upstreams.without_former();
        assert_eq!(
            [1, 2, 3].map(|number| header(&upstreams, number)),
            [Some("session-1"), None, None]
        );
    }

    /// J10: the number of former upstreams is bounded.
    #[test]
    fn the_latest_upstreams_are_kept() {
        let all = (0..100).fold(Upstreams::default(), |upstreams, number| {
            upstreams.followed_by(&configuration(&[number]))
        });
        assert_eq!(all.former.len(), MAX_FORMER);
        assert!(header(&all, 0).is_none());
        assert!(header(&all, 98).is_some());
        assert!(header(&all, 99).is_some());
    }
}
