use parking_lot::Mutex;
use serde_json::json;

use crate::message::Params;

/// The resource subscriptions and the log level that the client's session has accepted. A
/// replacement session gets the same.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    level: Option<String>,
    /// In the order of subscription.
    uris: Vec<String>,
}

/// A change that a successful request of the client makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionChange {
    /// Sets the log level.
    Level(String),
    /// Subscribes to the resource with this URI.
    Subscribe(String),
    /// Ends the subscription to the resource with this URI.
    Unsubscribe(String),
}

/// The maximum number of stored subscriptions. Others are forwarded but end with their session.
const MAX_SUBSCRIPTIONS: usize = 256;
/// The maximum length of a stored URI or log level, in bytes. Others are forwarded but end with
/// their session.
const MAX_LENGTH: usize = 4096;

impl Subscriptions {
    /// Stores a change.
    pub(crate) fn change(&self, change: SubscriptionChange) {
        let mut state = self.0.lock();
        match change {
            SubscriptionChange::Level(level) => state.level = Some(level),
            SubscriptionChange::Unsubscribe(uri) => state.uris.retain(|stored| *stored != uri),
            SubscriptionChange::Subscribe(uri) if state.uris.contains(&uri) => {}
            SubscriptionChange::Subscribe(uri)
                if state.uris.len() < MAX_SUBSCRIPTIONS && uri.len() <= MAX_LENGTH =>
            {
                state.uris.push(uri);
            }
            SubscriptionChange::Subscribe(_) => {
                tracing::warn!(
                    "a subscription is not stored for session renewal: there are too many, or its URI is too long"
                );
            }
        }
    }

    /// The requests that restore the state in a new session.
    pub(crate) fn all(&self) -> Vec<SubscriptionChange> {
        let state = self.0.lock();
        let level = state.level.iter().cloned().map(SubscriptionChange::Level);
        level
            .chain(
                state
                    .uris
                    .iter()
                    .cloned()
                    .map(SubscriptionChange::Subscribe),
            )
            .collect()
    }

    /// Whether there is nothing to restore.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.0.lock();
        state.level.is_none() && state.uris.is_empty()
    }

    /// Removes what a new session rejected, unless the client has replaced it meanwhile.
    pub(crate) fn forget(&self, rejected: &SubscriptionChange) {
        let mut state = self.0.lock();
        match rejected {
            SubscriptionChange::Level(level) => {
                drop(state.level.take_if(|current| current == level))
            }
            SubscriptionChange::Subscribe(uri) | SubscriptionChange::Unsubscribe(uri) => {
                state.uris.retain(|stored| stored != uri)
            }
        }
    }

    /// Removes everything, for a new handshake of the client.
    pub(crate) fn clear(&self) {
        *self.0.lock() = State::default();
    }
}

impl SubscriptionChange {
    /// The change that a successful request makes. `None` for other methods, and for parameters
    /// that the server rejects.
    pub(crate) fn of(method: &str, params: Params<'_>) -> Option<Self> {
        match method {
            "logging/setLevel" => params
                .level()
                .filter(|level| level.len() <= MAX_LENGTH)
                .map(Self::Level),
            "resources/subscribe" => params.uri().map(Self::Subscribe),
            "resources/unsubscribe" => params.uri().map(Self::Unsubscribe),
            _ => None,
        }
    }

    /// The method of the request that makes the change.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Level(_) => "logging/setLevel",
            Self::Subscribe(_) => "resources/subscribe",
            Self::Unsubscribe(_) => "resources/unsubscribe",
        }
    }

    /// The parameters of the request, without `_meta`, because progress notifications have no
    /// receiver.
    pub(crate) fn params(&self) -> String {
        match self {
            Self::Level(level) => json!({ "level": level }),
            Self::Subscribe(uri) | Self::Unsubscribe(uri) => json!({ "uri": uri }),
        }
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscribe(uri: &str) -> SubscriptionChange {
        SubscriptionChange::Subscribe(uri.to_owned())
    }

    #[test]
    fn the_latest_change_counts() {
        let subscriptions = Subscriptions::default();
        assert!(subscriptions.is_empty());
        for change in [
            SubscriptionChange::Level("info".into()),
            subscribe("a:b"),
            subscribe("a:c"),
            subscribe("a:b"),
            SubscriptionChange::Unsubscribe("a:c".into()),
            SubscriptionChange::Unsubscribe("a:d".into()),
            SubscriptionChange::Level("error".into()),
        ] {
            subscriptions.change(change);
        }
        assert_eq!(
            subscriptions.all(),
            [SubscriptionChange::Level("error".into()), subscribe("a:b")]
        );

        subscriptions.forget(&SubscriptionChange::Level("error".into()));
        assert_eq!(subscriptions.all(), [subscribe("a:b")]);
        subscriptions.clear();
        assert!(subscriptions.is_empty());
    }

    /// The new session can reject a log level after the client has set another one, which stays.
    #[test]
    fn a_rejected_level_does_not_remove_a_newer_one() {
        let subscriptions = Subscriptions::default();
        let level = |name: &str| SubscriptionChange::Level(name.to_owned());
        subscriptions.change(level("info"));
        let [restored] = &subscriptions.all()[..] else {
            panic!("only the level is stored")
        };
        subscriptions.change(level("error"));
        subscriptions.forget(restored);
        assert_eq!(subscriptions.all(), [level("error")]);
        subscriptions.forget(&level("error"));
        assert!(subscriptions.is_empty());
    }

    #[test]
    fn the_number_and_length_of_subscriptions_are_limited() {
        let subscriptions = Subscriptions::default();
        subscriptions.change(subscribe(&"x".repeat(MAX_LENGTH + 1)));
        assert!(subscriptions.is_empty());
        for number in 0..2 * MAX_SUBSCRIPTIONS {
            subscriptions.change(subscribe(&format!("a:{number}")));
        }
        assert_eq!(subscriptions.all().len(), MAX_SUBSCRIPTIONS);
        assert_eq!(subscriptions.all()[0], subscribe("a:0"));
        subscriptions.change(SubscriptionChange::Unsubscribe("a:0".into()));
        subscriptions.change(subscribe("a:new"));
        assert_eq!(subscriptions.all().last(), Some(&subscribe("a:new")));
    }
}
