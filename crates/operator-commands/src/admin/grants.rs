//! `portcullis admin grants` and `portcullis admin end-grants`: grants of the server's broker.

use std::process::ExitCode;

use anyhow::Context as _;
use portcullis_metadata::EscapedText;
use portcullis_serve::administration::{
    END_GRANTS, EndGrantsRequest, EndGrantsResult, GRANTS, GrantEntry, GrantList, MAX_PAGE,
};
use portcullis_terminal::{counted, print, print_json, tell};
use serde::Serialize;

use super::{
    encoded_query, result,
    table::{aligned, name, span},
    target::Target,
};
use crate::cli::{AdminEndGrants, AdminGrants};

const HEAD: [&str; 8] = [
    "GRANT", "SUBJECT", "CLIENT", "PROVIDER", "SCOPES", "RESOURCE", "BEGUN", "USED",
];

/// The printed list.
#[derive(Serialize)]
struct Listing {
    grants: Vec<GrantEntry>,
    /// The number of grants that the server cannot read.
    unreadable: usize,
    /// Whether there can be more grants that satisfy the filter.
    may_have_more: bool,
}

/// The printed result of an end.
#[derive(Serialize)]
struct Ended {
    grants_ended: usize,
    unreadable: usize,
}

/// Prints the grants, page by page up to the limit.
pub(super) async fn list(arguments: &AdminGrants) -> anyhow::Result<ExitCode> {
    let target = Target::new(&arguments.target)?;
    let limit = usize::try_from(arguments.limit)?;
    let mut listing = Listing {
        grants: Vec::new(),
        unreadable: 0,
        may_have_more: false,
    };
    let mut after = None;
    loop {
        let missing = limit - listing.grants.len();
        let query = query(arguments, after.as_deref(), missing.min(MAX_PAGE));
        let page: GrantList = result(target.get(&format!("{GRANTS}?{query}")).await?)?;
        listing.grants.extend(page.grants);
        listing.unreadable += page.unreadable;
        after = page.next;
        if after.is_none() || listing.grants.len() >= limit {
            break;
        }
    }
    listing.may_have_more = after.is_some();
    if arguments.target.json {
        print_json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(text(&listing.grants))?;
    tell_unreadable(listing.unreadable);
    if listing.may_have_more {
        tell("there can be more grants: use a filter, or raise --limit");
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends grants, page by page, and prints how many.
pub(super) async fn end(arguments: &AdminEndGrants) -> anyhow::Result<ExitCode> {
    let target = Target::new(&arguments.target)?;
    let mut request = request(arguments);
    let mut ended = Ended {
        grants_ended: 0,
        unreadable: 0,
    };
    loop {
        let page = target.post(END_GRANTS, &request).await.and_then(result);
        let page: EndGrantsResult = page.with_context(|| before(ended.grants_ended))?;
        ended.grants_ended += page.grants_ended;
        ended.unreadable += page.unreadable;
        request.after = page.next;
        if request.after.is_none() {
            break;
        }
    }
    if arguments.target.json {
        print_json(&ended)?;
        return Ok(ExitCode::SUCCESS);
    }
    let grants = counted(ended.grants_ended, "grant");
    print(format_args!(
        "ended {grants} with the sessions of their users"
    ))?;
    tell_unreadable(ended.unreadable);
    Ok(ExitCode::SUCCESS)
}

/// Returns what precedes an error: how many grants earlier pages have ended.
fn before(ended: usize) -> String {
    match ended {
        0 => "the grants could not be ended".to_owned(),
        ended => format!(
            "{} ended, and the others could not be ended",
            counted(ended, "grant")
        ),
    }
}

fn tell_unreadable(count: usize) {
    if count > 0 {
        tell(format_args!(
            "{} cannot be read, because its key has been removed or its record was changed: it cannot be refreshed",
            counted(count, "grant")
        ));
    }
}

fn request(arguments: &AdminEndGrants) -> EndGrantsRequest {
    EndGrantsRequest {
        grant: arguments.grant.clone(),
        subject: arguments.subject.clone(),
        client: arguments.client.clone(),
        provider: arguments.provider.clone(),
        after: None,
        note: arguments.note.clone(),
    }
}

/// Returns the query for one page of at most `limit` grants, after this position.
fn query(arguments: &AdminGrants, after: Option<&str>, limit: usize) -> String {
    let filters = [
        ("grant", arguments.grant.as_deref()),
        ("subject", arguments.subject.as_deref()),
        ("client", arguments.client.as_deref()),
        ("provider", arguments.provider.as_deref()),
        ("after", after),
    ];
    encoded_query(limit, filters)
}

/// Returns the table, the grants that were used last first.
fn text(grants: &[GrantEntry]) -> String {
    if grants.is_empty() {
        return "there are no such grants".to_owned();
    }
    let mut sorted: Vec<&GrantEntry> = grants.iter().collect();
    sorted.sort_by_key(|grant| (grant.unused_seconds, grant.age_seconds));
    aligned(HEAD, sorted.into_iter().map(row))
}

fn row(grant: &GrantEntry) -> [String; 8] {
    let ago = |seconds| format!("{} ago", span(seconds));
    [
        EscapedText(&grant.grant).to_string(),
        EscapedText(&grant.subject).to_string(),
        EscapedText(&grant.client).to_string(),
        name(grant.provider.as_deref()),
        EscapedText(&grant.scopes).to_string(),
        name(grant.resource.as_deref()),
        ago(grant.age_seconds),
        ago(grant.unused_seconds),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{AdminCommand, Cli, OperatorCommand};

    fn parse(arguments: &str) -> Result<AdminCommand, clap::Error> {
        let words = ["portcullis", "admin"]
            .into_iter()
            .chain(arguments.split(' '));
        match Cli::try_parse_from(words)?.command {
            OperatorCommand::Admin(admin) => Ok(admin.command),
            _ => unreachable!(),
        }
    }

    fn grant(subject: &str, unused_seconds: u64) -> GrantEntry {
        GrantEntry {
            grant: "g-1".into(),
            subject: subject.into(),
            client: "https://client.example/c.json".into(),
            provider: Some("entra".into()),
            scopes: "mcp:tools".into(),
            resource: None,
            begun: "2027-01-15T08:00:00.000Z".into(),
            age_seconds: 93_784,
            last_used: "2027-01-15T08:00:00.000Z".into(),
            unused_seconds,
        }
    }

    #[test]
    fn queries_are_encoded() {
        let Ok(AdminCommand::Grants(arguments)) =
            parse("grants --user a&b=c --provider entra --limit 5")
        else {
            panic!("not parsed")
        };
        assert_eq!(
            query(&arguments, Some("f"), 5),
            "limit=5&subject=a%26b%3Dc&provider=entra&after=f"
        );
    }

    /// RF6: an end names a grant, a user or a provider, and never a client alone.
    #[test]
    fn ends_need_a_target() {
        for valid in [
            "end-grants --grant g",
            "end-grants --subject a",
            "end-grants --user a --client c",
            "end-grants --provider p --client c --note n",
        ] {
            assert!(parse(valid).is_ok(), "{valid}");
        }
        for invalid in [
            "end-grants",
            "end-grants --client c",
            "end-grants --grant g --subject a",
            "end-grants --grant g --client c",
            "grants --limit 0",
        ] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }

    /// J8: names from tokens and registrations are escaped, and columns are aligned.
    #[test]
    fn grants_are_aligned_and_escaped() {
        let text = text(&[grant("idp_mallory\u{1b}[2J", 75), grant("idp_a", 3)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("GRANT  SUBJECT"), "{text}");
        assert!(lines[1].contains("idp_a "), "{text}");
        assert!(lines[2].contains("1m 15s ago"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(lines[0].find("SCOPES"), lines[1].find("mcp:tools"));
        assert_eq!(super::text(&[]), "there are no such grants");
    }

    /// An error after some pages says how many grants have ended.
    #[test]
    fn earlier_pages_are_not_forgotten() {
        assert!(before(0).contains("could not be ended"));
        assert!(before(500).starts_with("500 grants ended"));
    }
}
