//! [`Site`]: a running peer, and how to sign in there.

use std::any::Any;

use url::Url;

/// Whether a peer can be used here.
pub(super) enum Start {
    Ready(Box<Site>),
    /// Why not.
    Missing(String),
}

/// A running peer. What was started for it ends when this is dropped.
pub(super) struct Site {
    /// The resource.
    pub(super) url: Url,
    /// What a person adds to `login`, `connect` and `call`.
    pub(super) options: Vec<String>,
    /// Variables of these commands.
    pub(super) environment: Vec<(&'static str, String)>,
    /// Where the authorization server is told to forget its clients.
    pub(super) forget: Option<Url>,
    _running: Vec<Box<dyn Any>>,
}

impl Start {
    pub(super) fn ready(site: Site) -> Self {
        Self::Ready(Box::new(site))
    }
}

impl Site {
    /// A peer at which a person needs no option.
    pub(super) fn new(url: Url) -> Self {
        Self { url, options: Vec::new(), environment: Vec::new(), forget: None, _running: Vec::new() }
    }

    pub(super) fn with_options(mut self, options: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// Keeps something that runs for it.
    pub(super) fn keeping(mut self, running: impl Any) -> Self {
        self._running.push(Box::new(running));
        self
    }

    /// Whether the commands consent by themselves.
    pub(super) fn is_automatic(&self) -> bool {
        self.options.iter().any(|option| option == "--auto-consent")
    }
}
