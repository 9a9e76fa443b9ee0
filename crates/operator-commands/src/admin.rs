//! `portcullis admin`: sessions, grants and cached tokens of a running server.

mod grants;
mod peer;
mod table;
mod target;
mod transport;

use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use portcullis_serve::administration::{
    DROP_NOT_SHARED, DROP_TOKENS, DropRequest, DropResult, END_SESSIONS, EndRequest, EndResult,
    ErrorResponse, MAX_PAGE, SESSIONS, SessionEntry, SessionList,
};
use portcullis_session::NotRecorded;
use portcullis_terminal::{counted, print, print_json, report, tell};
use serde::{Serialize, de::DeserializeOwned};
use url::form_urlencoded::Serializer;

use self::{table::WITHOUT_SESSIONS, target::Target};
use crate::{
    cli::{Admin, AdminCommand, AdminDropTokens, AdminEnd, AdminSessions},
    command_error,
    exchange::Answer,
};

/// The exit code for an action that took effect in one process, without a record or at one replica
/// only.
const NOT_RECORDED: u8 = 3;

pub(crate) fn run(arguments: &Admin) -> anyhow::Result<ExitCode> {
    let runtime = crate::control_runtime()?;
    runtime.block_on(async {
        match &arguments.command {
            AdminCommand::Sessions(arguments) => sessions(arguments).await,
            AdminCommand::End(arguments) => end(arguments).await,
            AdminCommand::Grants(arguments) => grants::list(arguments).await,
            AdminCommand::EndGrants(arguments) => grants::end(arguments).await,
            AdminCommand::DropTokens(arguments) => drop_tokens(arguments).await,
        }
    })
}

/// The printed list.
#[derive(Serialize)]
struct Listing {
    sessions: Vec<SessionEntry>,
    /// The number of sessions in the table of the server, printed or not.
    total: usize,
    /// Whether more sessions satisfy the filter than were printed.
    has_more: bool,
}

/// Prints the sessions of the server, page by page up to the limit.
async fn sessions(arguments: &AdminSessions) -> anyhow::Result<ExitCode> {
    let target = Target::new(&arguments.target)?;
    let limit = usize::try_from(arguments.limit)?;
    let mut listing = Listing {
        sessions: Vec::new(),
        total: 0,
        has_more: false,
    };
    let mut after = None;
    loop {
        let missing = limit - listing.sessions.len();
        let query = query(arguments, after.as_deref(), missing.min(MAX_PAGE));
        let page: SessionList = result(target.get(&format!("{SESSIONS}?{query}")).await?)?;
        listing.total = page.total;
        listing.sessions.extend(page.sessions);
        listing.has_more = page.next.is_some();
        after = page.next;
        if after.is_none() || listing.sessions.len() >= limit {
            break;
        }
    }
    if arguments.target.json {
        print_json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    table::print(&listing.sessions, arguments.has_filter())?;
    if listing.has_more {
        tell(format_args!(
            "there are more sessions: use a filter, or raise --limit"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the query for one page of at most `limit` sessions, after this position.
fn query(arguments: &AdminSessions, after: Option<&str>, limit: usize) -> String {
    let AdminSessions {
        subject,
        client,
        issuer,
        resource,
        session,
        ..
    } = arguments;
    let filters = [
        ("subject", subject.as_deref()),
        ("client", client.as_deref()),
        ("issuer", issuer.as_deref()),
        ("resource", resource.as_deref()),
        ("session", session.as_deref()),
        ("after", after),
    ];
    encoded_query(limit, filters)
}

/// Returns a query with a limit and the parameters that have a value.
fn encoded_query<'a>(
    limit: usize,
    parameters: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("limit", &limit.to_string());
    let given = parameters.into_iter();
    query.extend_pairs(given.filter_map(|(name, value)| Some((name, value?))));
    query.finish()
}

/// Ends sessions, and prints how many.
async fn end(arguments: &AdminEnd) -> anyhow::Result<ExitCode> {
    let AdminEnd {
        target,
        subject,
        client,
        issuer,
        session,
        note,
    } = arguments;
    let request = EndRequest {
        session: session.clone(),
        subject: subject.clone(),
        client: client.clone(),
        issuer: issuer.clone(),
        note: note.clone(),
    };
    let answer = Target::new(target)?.post(END_SESSIONS, &request).await?;
    if let Some(code) = not_recorded(&answer) {
        return Ok(code);
    }
    let ended: EndResult = result(answer)?;
    if target.json {
        print_json(&ended)?;
    } else {
        let more = if session.is_some() {
            ""
        } else {
            ", and all sessions of this owner that are in no table"
        };
        let sessions = counted(ended.sessions_ended, "session");
        let streams = counted(ended.streams_ended, "event stream");
        print(format_args!(
            "ended {sessions} in the server's table and {streams}{more}"
        ))?;
        if ended.sessions_ended == 0 && session.is_none() {
            tell(format_args!(
                "{WITHOUT_SESSIONS}: they continue until their tokens are rejected (docs/use/administration.md)"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the error of an action that took effect in one process only, and returns its exit code.
/// `None` for other responses.
fn not_recorded(answer: &Answer) -> Option<ExitCode> {
    let ErrorResponse { error } = serde_json::from_slice(&answer.body).ok()?;
    [NotRecorded.code(), DROP_NOT_SHARED]
        .contains(&error.code.as_str())
        .then(|| {
            report(&command_error(anyhow!(refusal(answer))));
            ExitCode::from(NOT_RECORDED)
        })
}

/// Drops the cached tokens of an issuer, and prints how many.
async fn drop_tokens(arguments: &AdminDropTokens) -> anyhow::Result<ExitCode> {
    let AdminDropTokens {
        target,
        issuer,
        note,
    } = arguments;
    let request = DropRequest {
        issuer: issuer.clone(),
        note: note.clone(),
    };
    let answer = Target::new(target)?.post(DROP_TOKENS, &request).await?;
    if let Some(code) = not_recorded(&answer) {
        return Ok(code);
    }
    let dropped: DropResult = result(answer)?;
    if target.json {
        print_json(&dropped)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tokens = counted(dropped.tokens_dropped, "cached token");
    let streams = counted(dropped.streams_ended, "event stream");
    print(format_args!("dropped {tokens} and ended {streams}"))?;
    if !dropped.keys_fetched {
        tell("the issuer's keys could not be fetched again: the former ones remain in use");
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the result of an action.
fn result<T: DeserializeOwned>(answer: Answer) -> anyhow::Result<T> {
    if !answer.status.is_success() {
        anyhow::bail!(refusal(&answer));
    }
    serde_json::from_slice(&answer.body)
        .context("the server sent an unexpected response; is this the listener of [admin]?")
}

/// Returns the server's message and code, or the status if the body is not an error of the
/// administration API.
fn refusal(answer: &Answer) -> String {
    match serde_json::from_slice::<ErrorResponse>(&answer.body) {
        Ok(refusal) => format!("{} ({})", refusal.error.message, refusal.error.code),
        Err(_) => {
            format!(
                "the server answered with status {}; is this the listener of [admin]?",
                answer.status.as_u16()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::cli::{Cli, OperatorCommand};

    fn parse(arguments: &str) -> Result<AdminCommand, clap::Error> {
        match Cli::try_parse_from(
            ["portcullis", "admin"]
                .into_iter()
                .chain(arguments.split(' ')),
        )?
        .command
        {
            OperatorCommand::Admin(admin) => Ok(admin.command),
            _ => unreachable!(),
        }
    }

    #[test]
    fn queries_are_encoded() {
        let Ok(AdminCommand::Sessions(arguments)) =
            parse("sessions --subject a&b=c --issuer https://i/ü --limit 5")
        else {
            panic!("not parsed")
        };
        let query = query(&arguments, Some("00"), 5);
        assert_eq!(
            query,
            "limit=5&subject=a%26b%3Dc&issuer=https%3A%2F%2Fi%2F%C3%BC&after=00"
        );
    }

    /// E12: an end needs to name what ends.
    #[test]
    fn ends_need_a_target() {
        for valid in [
            "end --subject a",
            "end --client c --issuer i",
            "end --session 00",
            "end --subject a --client c",
        ] {
            assert!(parse(valid).is_ok(), "{valid}");
        }
        for invalid in [
            "end",
            "end --issuer i",
            "end --session 00 --subject a",
            "end --session 00 --issuer i",
            "sessions --limit 0",
        ] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }

    /// E12: only the server's own codes mean that an action took effect; a proxy in front can also
    /// respond with 503.
    #[test]
    fn other_rejections_took_no_effect() {
        let answer = |body: String| Answer {
            status: StatusCode::SERVICE_UNAVAILABLE,
            headers: HeaderMap::new(),
            body: body.into_bytes(),
        };
        let coded =
            |code: &str| answer(format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#));
        for code in ["session.end_not_recorded", "admin.drop_not_shared"] {
            assert_eq!(
                not_recorded(&coded(code)),
                Some(ExitCode::from(NOT_RECORDED)),
                "{code}"
            );
        }
        for other in [coded("shared.unreachable"), answer("busy".to_owned())] {
            assert_eq!(not_recorded(&other), None);
        }
    }

    #[test]
    fn refusals_have_their_message_and_code() {
        let answer = |status, body: &str| Answer {
            status,
            headers: HeaderMap::new(),
            body: body.as_bytes().to_vec(),
        };
        let body = r#"{"error":{"code":"admin.token_invalid","message":"no"}}"#;
        let error = result::<EndResult>(answer(StatusCode::UNAUTHORIZED, body)).unwrap_err();
        assert_eq!(error.to_string(), "no (admin.token_invalid)");
        let error = result::<EndResult>(answer(StatusCode::NOT_FOUND, "not found")).unwrap_err();
        assert!(error.to_string().contains("status 404"), "{error}");
        assert!(
            result::<EndResult>(answer(StatusCode::OK, "{}"))
                .unwrap_err()
                .to_string()
                .contains("unexpected")
        );
    }
}
