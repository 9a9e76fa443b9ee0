//! `portcullis status URL` and `portcullis list`: the stored tokens, without the tokens themselves.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use portcullis_client::{
    Shortened, StartUrl,
    store::{StoreListing, StoredToken, UnusableEntry},
};
use portcullis_metadata::{
    Clock as _, EscapedText, SystemClock, UnixTime, syntax::url_without_secrets,
};
use portcullis_telemetry::timestamp;
use portcullis_terminal::{print_json, remedy, tell};
use serde::Serialize;

use crate::{cli, sign_in};

/// The end of the year 9999, after which RFC 3339 has no notation.
const MAX_SHOWN_TIME: u64 = 253_402_300_799;

/// A stored token, without secrets. The URLs have no query, which can hold one.
#[derive(Serialize)]
struct Entry {
    url: String,
    issuer: String,
    resource: String,
    client_id: Option<String>,
    /// The scopes that were granted. Null if the server did not state them.
    scopes: Option<Vec<String>>,
    /// The scopes that were requested and not granted.
    missing_scopes: Vec<String>,
    /// Seconds since 1970; null if the server did not state the expiry.
    expires_at: Option<u64>,
    state: State,
    has_refresh_token: bool,
    dpop_bound: bool,
    file: Option<PathBuf>,
}

/// Whether a token can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Valid,
    /// Expired, with a refresh token.
    Refreshable,
    Expired,
}

#[derive(Serialize)]
struct Unusable {
    file: Option<PathBuf>,
    reason: String,
}

#[derive(Serialize)]
struct Listing {
    tokens: Vec<Entry>,
    unusable: Vec<Unusable>,
}

/// Prints the tokens for one URL. Exits with 1 if none of them can be used without a sign-in.
pub(crate) fn status(arguments: &cli::Status) -> anyhow::Result<ExitCode> {
    let start = StartUrl::parse(&arguments.url)?;
    let listing = listing(&arguments.options, |token| token.is_for(&start))?;
    print(&arguments.options, &listing)?;
    if listing
        .tokens
        .iter()
        .any(|token| token.state != State::Expired)
    {
        return Ok(ExitCode::SUCCESS);
    }
    tell(format_args!(
        "not signed in; run `portcullis login {start}`"
    ));
    Ok(ExitCode::FAILURE)
}

/// Prints all tokens.
pub(crate) fn list(arguments: &cli::List) -> anyhow::Result<()> {
    let options = &arguments.options;
    let listing = listing(options, |_| true)?;
    print(options, &listing)?;
    if listing.tokens.is_empty() && !options.json {
        tell("no tokens are stored");
    }
    Ok(())
}

fn listing(
    options: &cli::StoreOptions,
    is_shown: impl Fn(&portcullis_client::ResourceToken) -> bool,
) -> anyhow::Result<Listing> {
    let now = SystemClock::new().now();
    let StoreListing {
        tokens, unusable, ..
    } = sign_in::store_in(options.store.directory.as_deref())?.listing()?;
    let shown = tokens.iter().filter(|stored| is_shown(&stored.token));
    Ok(Listing {
        tokens: shown.map(|stored| entry(stored, now)).collect(),
        unusable: unusable.into_iter().map(reason).collect(),
    })
}

fn entry(stored: &StoredToken, now: UnixTime) -> Entry {
    let token = &stored.token;
    let resource = url_without_secrets(token.resource().url()).to_string();
    let url = token
        .start_url()
        .map_or_else(|| resource.clone(), ToString::to_string);
    let names =
        |scopes: &portcullis_metadata::Scopes| scopes.iter().map(str::to_owned).collect::<Vec<_>>();
    let state = match (token.is_expired(now), token.refresh_token()) {
        (false, _) => State::Valid,
        (true, Some(_)) => State::Refreshable,
        (true, None) => State::Expired,
    };
    Entry {
        url,
        issuer: token.issuer().to_string(),
        resource,
        client_id: token.client_id().map(str::to_owned),
        scopes: token.scopes().map(names),
        missing_scopes: names(&token.ungranted_scopes()),
        expires_at: token.expires_at().map(UnixTime::as_secs),
        state,
        has_refresh_token: token.refresh_token().is_some(),
        dpop_bound: token.is_dpop_bound(),
        file: stored.file.clone(),
    }
}

fn reason(entry: UnusableEntry) -> Unusable {
    let reason = entry.error.map_or_else(
        || "the file cannot be understood".to_owned(),
        |error| error.to_string() + &remedy(&error),
    );
    Unusable {
        file: entry.file,
        reason,
    }
}

fn print(options: &cli::StoreOptions, listing: &Listing) -> anyhow::Result<()> {
    if options.json {
        return Ok(print_json(listing)?);
    }
    for token in &listing.tokens {
        portcullis_terminal::print(text(token))?;
    }
    for Unusable { file, reason } in &listing.unusable {
        tell(format_args!(
            "cannot use {}: {}",
            shown(file.as_deref()),
            EscapedText(reason)
        ));
    }
    Ok(())
}

fn text(token: &Entry) -> String {
    let scopes = match token.scopes.as_deref() {
        None => "not stated".to_owned(),
        Some([]) => "none".to_owned(),
        Some(scopes) => Shortened(scopes.join(" ")).to_string(),
    };
    let missing = match token.missing_scopes.as_slice() {
        [] => String::new(),
        missing => format!(" (not granted: {})", Shortened(missing.join(" "))),
    };
    let expires = match token.expires_at {
        None => "not stated".to_owned(),
        Some(seconds) if seconds > MAX_SHOWN_TIME => "after the year 9999".to_owned(),
        Some(seconds) => timestamp(UnixTime::from_secs(seconds)).to_string(),
    };
    let state = match token.state {
        State::Valid if token.has_refresh_token => "valid, and refreshed automatically",
        State::Valid => "valid",
        State::Refreshable => "expired, and refreshed at the next use",
        State::Expired => "expired",
    };
    format!(
        "{}\n  state     {state}\n  issuer    {}\n  resource  {}\n  client    {}\n  scopes    {scopes}{missing}\n  \
         expires   {expires}\n  file      {}",
        EscapedText(&token.url),
        EscapedText(&token.issuer),
        EscapedText(&token.resource),
        EscapedText(&Shortened(token.client_id.as_deref().unwrap_or("not stated")).to_string()),
        shown(token.file.as_deref()),
    )
}

fn shown(file: Option<&Path>) -> String {
    file.map_or_else(
        || "in memory".to_owned(),
        |file| EscapedText(&file.display().to_string()).to_string(),
    )
}
