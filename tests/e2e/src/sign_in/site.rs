//! [`Site`]: a running peer, and how to sign in there.

use std::any::Any;

use url::Url;

/// Whether a peer can be used here.
pub(super) enum Start {
    Ready(Box<Site>),
    /// The reason.
    Missing(String),
}

/// A running peer, which ends when this is dropped.
pub(super) struct Site {
    /// The resource.
    pub(super) url: Url,
    /// The arguments of `login`, `connect` and `call`.
    pub(super) options: Vec<String>,
    /// The environment variables of these commands.
    pub(super) environment: Vec<(&'static str, String)>,
    /// The URL that makes the authorization server forget its clients.
    pub(super) forget: Option<Url>,
    _running: Vec<Box<dyn Any>>,
}

impl Start {
    pub(super) fn ready(site: Site) -> Self {
        Self::Ready(Box::new(site))
    }
}

impl Site {
    /// Returns a peer that needs no options.
    pub(super) fn new(url: Url) -> Self {
        Self {
            url,
            options: Vec::new(),
            environment: Vec::new(),
            forget: None,
            _running: Vec::new(),
        }
    }

    pub(super) fn with_options(
        mut self,
        options: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// Keeps a running program until this is dropped.
    pub(super) fn keeping(mut self, running: impl Any) -> Self {
        self._running.push(Box::new(running));
        self
    }

    /// Returns whether the commands consent automatically.
    pub(super) fn is_automatic(&self) -> bool {
        self.options.iter().any(|option| option == "--auto-consent")
    }
}
