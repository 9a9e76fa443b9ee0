//! The terminal of a user who signs in.

use std::{
    io::{self, BufRead as _},
    thread,
};

use portcullis_client::{RedirectError, StartUrl};
use portcullis_metadata::Secret;
use portcullis_terminal::tell;
use tokio::sync::oneshot;

/// Prints advice while the redirect is waited for, in case the browser shows an error. The wait
/// continues.
pub(crate) fn print_delay(start: &StartUrl) {
    tell(format_args!(
        "no answer from the browser yet. If it shows an error, such as an unknown client, stop this and run\n\
         portcullis login --fresh {start}\nto register again. Still waiting."
    ));
}

/// Prints that another sign-in is waited for, which holds the lock of this server.
pub(crate) fn print_other_sign_in(start: &StartUrl) {
    tell(format_args!(
        "waiting for another sign-in to {start}, of another command or client on this machine. Complete it in the browser, or\n\
         end that command."
    ));
}

/// Asks for the final URL of the browser. `wrong` is why the last answer was not that URL.
pub(super) async fn pasted(wrong: Option<RedirectError>) -> Option<String> {
    match wrong {
        None => tell("or paste the final URL of the browser:"),
        Some(wrong) => tell(format_args!(
            "this is not that address ({wrong}); paste the whole address:"
        )),
    }
    line().await
}

/// Reads a line that the user types, on a separate thread, so that the process can end before it.
/// Returns `None` if the input is closed.
pub(super) async fn line() -> Option<String> {
    read_with(|| {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.ok().filter(|read| *read > 0).map(|_| line)
    })
    .await
}

/// As [`line()`], for a secret, which is not shown.
pub(super) async fn hidden_line() -> Option<Secret> {
    read_with(|| rpassword::read_password().ok().map(Secret::new)).await
}

async fn read_with<T: Send + 'static>(
    read: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    let (sender, received) = oneshot::channel();
    thread::spawn(move || {
        // It fails when no one waits for the line any more.
        let _ = sender.send(read());
    });
    received.await.ok().flatten()
}
