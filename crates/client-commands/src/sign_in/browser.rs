//! [`BrowserOpener`]: the browser of this machine, and what happens if there is none.

use std::{
    env,
    ffi::{OsStr, OsString},
    future::pending,
    io::{self, IsTerminal as _},
    path::Path,
    thread,
};

use portcullis_client::{
    AuthorizationRequest, Interaction as _, InteractionError, LoopbackRedirect, RedirectParameters,
};
use portcullis_terminal::tell;
use tokio::sync::watch;
use url::Url;

/// Variables of which one is set where a browser can appear on Linux and BSD: on a display, or in
/// Windows.
const DISPLAYS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_INTEROP"];
/// The variable with the browsers that the user chose, which may need no display: commands that
/// colons separate.
const BROWSER: &str = "BROWSER";

/// Opens the pages of sign-ins in the browser of this machine or, with `--no-browser`, prints their
/// URLs. Clones share the state.
#[derive(Clone)]
pub(crate) struct BrowserOpener {
    prints_only: bool,
    state: watch::Sender<PageState>,
}

/// What happened to the last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageState {
    Opening,
    /// No browser could be opened.
    Failed,
    /// The user is to open the URL.
    Printed,
}

impl BrowserOpener {
    /// `prints_only` is the option `--no-browser`.
    pub(crate) fn new(prints_only: bool) -> Self {
        Self {
            prints_only,
            state: watch::Sender::new(PageState::Opening),
        }
    }

    /// Opens the one-time address of a sign-in, without waiting for it. With `--no-browser`,
    /// nothing opens.
    ///
    /// The browser does not get the authorization URL, because other users can read its command
    /// line.
    pub(crate) fn open(&self, one_time: &Url) {
        if self.prints_only {
            return;
        }
        if !can_appear() {
            tracing::debug!(
                "none of {} is set, and {BROWSER} names no program",
                DISPLAYS.join(", ")
            );
            self.state.send_replace(PageState::Failed);
            return;
        }
        if !has_user() {
            // Others may be able to read the log of a client.
            tell(format_args!(
                "opening the browser for your consent; if nothing opens, visit\n{one_time}"
            ));
        }
        let (state, one_time) = (self.state.clone(), one_time.clone());
        // A browser in the terminal runs until its user leaves it. Meanwhile, the redirect must be
        // received.
        thread::spawn(move || {
            if let Err(error) = webbrowser::open(one_time.as_str()) {
                tracing::debug!(error = %error, "no browser opened");
                state.send_replace(PageState::Failed);
            }
        });
    }

    /// Opens the page of a request, or prints its URL, and waits for the response. If no browser
    /// can be opened, prints what a user can do. Fails as [`LoopbackRedirect`] does. Also fails
    /// when no browser can be opened and no user can see the printed URL.
    pub(crate) async fn authorize(
        &self,
        redirect: &LoopbackRedirect,
        request: &AuthorizationRequest,
    ) -> Result<RedirectParameters, InteractionError> {
        self.state.send_replace(PageState::Opening);
        let url = request.url();
        if self.prints_only {
            tell(format_args!("for your consent, visit\n{url}"));
            self.state.send_replace(PageState::Printed);
        } else if has_user() && can_appear() {
            tell(format_args!(
                "opening the browser for your consent; if nothing opens, visit\n{url}"
            ));
        }
        tokio::select! {
            biased;
            response = redirect.authorize(request) => response,
            error = self.advise_after_failure(url) => Err(error),
        }
    }

    /// Waits until the user is to open the URL: because it is only printed, or because no browser
    /// could be opened.
    pub(super) async fn until_printed(&self) {
        self.until(PageState::Printed).await;
    }

    /// If no browser can be opened, prints what a user can do, and does not return. Returns the
    /// error without a user.
    async fn advise_after_failure(&self, url: &Url) -> InteractionError {
        self.until(PageState::Failed).await;
        if !has_user() {
            return InteractionError::NoBrowser;
        }
        tell(advice(url));
        self.state.send_replace(PageState::Printed);
        pending().await
    }

    async fn until(&self, awaited: PageState) {
        // The sender exists, so that the wait cannot fail.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| *state == awaited)
            .await;
    }
}

/// Whether a user can see the URL, in a terminal.
fn has_user() -> bool {
    io::stdin().is_terminal() || io::stderr().is_terminal()
}

/// Whether a browser can appear somewhere. Without a display, desktop programs still start one, and
/// it ends at once.
fn can_appear() -> bool {
    can_appear_with(|name| env::var_os(name))
}

/// As [`can_appear`], with this environment.
fn can_appear_with(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let needs_display = cfg!(all(
        unix,
        not(any(target_os = "macos", target_os = "android"))
    ));
    let value = |name: &str| variable(name).filter(|value| !value.is_empty());
    !needs_display
        || DISPLAYS.into_iter().any(|name| value(name).is_some())
        || value(BROWSER)
            .is_some_and(|browsers| names_program(&browsers, &value("PATH").unwrap_or_default()))
}

/// Whether one of the commands in `BROWSER` names a program that exists.
fn names_program(browsers: &OsStr, path: &OsStr) -> bool {
    let browsers = browsers.to_string_lossy();
    let mut programs = browsers
        .split(':')
        .filter_map(|command| command.split_ascii_whitespace().next());
    programs.any(|program| match program.contains('/') {
        true => Path::new(program).is_file(),
        false => env::split_paths(path).any(|directory| directory.join(program).is_file()),
    })
}

/// What a user can do without a browser on this machine.
fn advice(url: &Url) -> String {
    let redirect = url.query_pairs().find(|(name, _)| name == "redirect_uri");
    let port = redirect.and_then(|(_, redirect)| Url::parse(&redirect).ok()?.port());
    let forwarding = port
        .map(|port| format!(" (ssh -L {port}:127.0.0.1:{port})"))
        .unwrap_or_default();
    format!(
        "no browser can be opened on this machine. For your consent, visit\n{url}\n\
         in a browser of this machine, or in one from which the port of the redirect is forwarded to this machine{forwarding}.\n\
         `portcullis login --device URL` signs in with another device instead. Waiting for the redirect."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I7: a display, a chosen browser that exists, or Windows below can show a browser.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_browser_needs_a_display() {
        let with = |set: &[(&str, &str)]| {
            let value = |name: &str| {
                set.iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| OsString::from(value))
            };
            can_appear_with(value)
        };
        assert!(!with(&[]));
        assert!(!with(&[("PATH", "/bin")]));
        for name in DISPLAYS {
            assert!(with(&[(name, ":0")]), "{name}");
            assert!(!with(&[(name, "")]), "{name}");
        }
        for (browser, expected) in [
            ("sh", true),
            ("/bin/sh", true),
            ("absent:sh -c %s", true),
            ("absent", false),
            ("/nowhere/sh", false),
            ("", false),
        ] {
            assert_eq!(
                with(&[(BROWSER, browser), ("PATH", "/nowhere:/bin")]),
                expected,
                "{browser}"
            );
        }
    }

    /// I7: the advice has the URL and the port to forward. A pushed request (RFC 9126) does not
    /// name the port.
    #[test]
    fn the_advice_names_the_port() {
        let url = "https://auth.example.com/authorize?client_id=me";
        let with = advice(
            &Url::parse(&format!(
                "{url}&redirect_uri=http://127.0.0.1:21537/callback"
            ))
            .unwrap(),
        );
        assert!(
            with.contains(url) && with.contains("(ssh -L 21537:127.0.0.1:21537)"),
            "{with}"
        );
        assert!(!advice(&Url::parse(url).unwrap()).contains("ssh"));
    }

    /// I7: clones share the state of the page; with `--no-browser`, nothing opens.
    #[tokio::test]
    async fn clones_share_the_state() {
        let opener = BrowserOpener::new(true);
        opener.open(&Url::parse("http://127.0.0.1:1/sign-in/a").unwrap());
        assert_eq!(*opener.state.borrow(), PageState::Opening);
        opener.state.send_replace(PageState::Printed);
        opener.clone().until_printed().await;
    }
}
