//! `--token-command`: a program that prints an access token.

use std::{
    io::Read as _,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use portcullis_client::{AccessTokenSource, AccessTokenSourceError};
use portcullis_discovery::BoxFuture;
use portcullis_metadata::{AccessToken, authorization::TokenResponse};
use zeroize::Zeroizing;

/// The time limit of the program.
const LIMIT: Duration = Duration::from_secs(10);
const MAX_OUTPUT: usize = 16 * 1024;
const POLL: Duration = Duration::from_millis(10);

/// A program and its arguments. No shell is involved.
#[derive(Clone, Debug)]
pub(crate) struct TokenCommand(Vec<String>);

impl TokenCommand {
    /// Splits a command line at spaces. Quotes, single or double, keep spaces; nothing is expanded.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let (mut words, mut word, mut quote): (_, Option<String>, _) = (Vec::new(), None, None);
        for character in text.chars() {
            match (quote, character) {
                (Some(open), _) if open == character => quote = None,
                (None, '"' | '\'') => {
                    quote = Some(character);
                    word.get_or_insert_default();
                }
                (None, _) if character.is_whitespace() => words.extend(word.take()),
                _ => word.get_or_insert_default().push(character),
            }
        }
        if quote.is_some() {
            bail!("--token-command: a quote is not closed");
        }
        words.extend(word);
        match words.first().is_some_and(|program| !program.is_empty()) {
            true => Ok(Self(words)),
            false => bail!("--token-command is empty"),
        }
    }

    fn run(&self, limit: Duration) -> anyhow::Result<TokenResponse> {
        let (program, arguments) = self.0.split_first().context("no program")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command
            .spawn()
            .with_context(|| format!("{program} does not start"))?;
        let output = output(&mut child, limit);
        if output.is_err() {
            // A program that has ended cannot be killed; its status is still read.
            let _ = child.kill();
            let _ = child.wait();
        }
        parse(&output.with_context(|| program.clone())?).with_context(|| program.clone())
    }
}

/// Reads standard output to its end and waits for success.
fn output(child: &mut Child, limit: Duration) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let deadline = Instant::now() + limit;
    let stdout = child.stdout.take().context("no standard output")?;
    let (sender, received) = mpsc::sync_channel(1);
    // A separate thread, because a descendant of the program can keep the pipe open.
    thread::spawn(move || {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_OUTPUT + 1));
        let read = stdout.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let bytes = match received.recv_timeout(limit) {
        Ok(bytes) => bytes.context("its output cannot be read")?,
        Err(_) => bail!("it did not end within {} s", limit.as_secs()),
    };
    if bytes.len() > MAX_OUTPUT {
        bail!("it printed more than {MAX_OUTPUT} bytes");
    }
    loop {
        match child.try_wait().context("its status cannot be read")? {
            Some(status) if status.success() => return Ok(bytes),
            Some(status) => bail!("it failed ({status})"),
            None if Instant::now() >= deadline => {
                bail!("it did not end within {} s", limit.as_secs())
            }
            None => thread::sleep(POLL),
        }
    }
}

/// Parses a token alone, or a token response (RFC 6749 section 5.1). Errors do not contain the
/// output.
fn parse(output: &[u8]) -> anyhow::Result<TokenResponse> {
    let text = std::str::from_utf8(output)
        .ok()
        .context("it did not print text")?
        .trim();
    if text.starts_with('{') {
        return TokenResponse::parse(text.as_bytes()).context("it did not print a token response");
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("it printed neither a token alone nor a token response");
    }
    Ok(TokenResponse::bearer(AccessToken::new(text)))
}

impl AccessTokenSource for TokenCommand {
    fn access_token(&self) -> BoxFuture<'_, Result<TokenResponse, AccessTokenSourceError>> {
        let command = self.clone();
        Box::pin(async move {
            let ran = tokio::task::spawn_blocking(move || command.run(LIMIT)).await;
            let failed =
                |cause: String| AccessTokenSourceError::new(format!("--token-command: {cause}"));
            match ran {
                Ok(result) => result.map_err(|error| failed(format!("{error:#}"))),
                Err(_) => Err(failed("it was interrupted".to_owned())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, limit: Duration) -> Result<String, String> {
        let ran = TokenCommand::parse(command).and_then(|command| command.run(limit));
        ran.map(|response| response.access_token.secret().to_owned())
            .map_err(|error| format!("{error:#}"))
    }

    /// I10: a token alone or a token response; nothing is expanded by a shell.
    #[test]
    fn a_program_prints_a_token() {
        for (command, token) in [
            ("printf hush", "hush"),
            ("echo '$HOME'\"x\"", "$HOMEx"),
            (
                r#"echo '{"access_token":"hush","token_type":"bearer","expires_in":60}'"#,
                "hush",
            ),
        ] {
            assert_eq!(run(command, LIMIT).unwrap(), token, "{command}");
        }
    }

    /// I10, J2: each failure has its message, which does not contain the output.
    #[test]
    fn failures_do_not_show_the_output() {
        for (command, cause) in [
            ("", "empty"),
            ("'a", "quote"),
            ("/nowhere/at-all", "does not start"),
            ("sh -c 'echo hush; exit 3'", "failed"),
            ("echo hush hush", "neither"),
            ("true", "neither"),
            ("echo '{\"token\":\"hush\"}'", "token response"),
            ("yes hush", "more than 16384 bytes"),
        ] {
            let error = run(command, LIMIT).unwrap_err();
            assert!(error.contains(cause), "{command}: {error}");
            assert!(!error.contains("hush"), "{command}: {error}");
        }
    }

    /// I10: a program that runs for too long is ended, whether or not it has closed its output.
    #[test]
    fn the_time_is_bounded() {
        for command in ["sleep 30", "sh -c 'exec >&-; sleep 30'"] {
            assert_eq!(
                run(command, Duration::from_secs(1))
                    .unwrap_err()
                    .split(": ")
                    .last(),
                Some("it did not end within 1 s")
            );
        }
    }
}
