//! Tables for people.

use portcullis_serve::administration::SessionEntry;
use std::{fmt::Write as _, time::Duration};

use portcullis_metadata::EscapedText;

const HEAD: [&str; 8] = [
    "SESSION", "SUBJECT", "CLIENT", "ISSUER", "RESOURCE", "AGE", "UNUSED", "STREAMS",
];

/// Clients without sessions, which no list has.
pub(super) const WITHOUT_SESSIONS: &str = "clients of 2026-07-28 have no sessions";

/// Prints the sessions, those that were used last first. `has_filter`: there may be others.
pub(super) fn print(sessions: &[SessionEntry], has_filter: bool) -> std::io::Result<()> {
    portcullis_terminal::print(text(sessions, has_filter))
}

fn text(sessions: &[SessionEntry], has_filter: bool) -> String {
    if sessions.is_empty() {
        let such = if has_filter { "such " } else { "" };
        return format!("there are no {such}sessions in the server's table; {WITHOUT_SESSIONS}");
    }
    let mut sorted: Vec<&SessionEntry> = sessions.iter().collect();
    sorted.sort_by_key(|session| (session.unused_seconds, session.age_seconds));
    aligned(HEAD, sorted.into_iter().map(row))
}

/// Returns a table with aligned columns.
pub(super) fn aligned<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let rows: Vec<[String; N]> = std::iter::once(head.map(str::to_owned))
        .chain(rows)
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        if !text.is_empty() {
            text.push('\n');
        }
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a string does not fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
    }
    text
}

fn row(session: &SessionEntry) -> [String; 8] {
    let unused = if session.in_use {
        "in use".to_owned()
    } else {
        span(session.unused_seconds)
    };
    [
        EscapedText(&session.session).to_string(),
        name(session.subject.as_deref()),
        name(session.client.as_deref()),
        name(session.issuer.as_deref()),
        EscapedText(&session.resource).to_string(),
        span(session.age_seconds),
        unused,
        session.streams.to_string(),
    ]
}

/// Returns a name, or a dash if there is none.
pub(super) fn name(name: Option<&str>) -> String {
    name.map_or_else(|| "-".to_owned(), |name| EscapedText(name).to_string())
}

/// The two largest units of a duration.
pub(super) fn span(seconds: u64) -> String {
    let shown = humantime::format_duration(Duration::from_secs(seconds)).to_string();
    shown.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(subject: Option<&str>, unused_seconds: u64, in_use: bool) -> SessionEntry {
        SessionEntry {
            session: "00000000000000ff".into(),
            resource: "https://mcp.example.com/mcp".into(),
            issuer: subject.map(|_| "https://i.example".into()),
            subject: subject.map(Into::into),
            client: None,
            created: "2027-01-15T08:00:00.000Z".into(),
            age_seconds: 93_784,
            unused_seconds,
            in_use,
            streams: 2,
            adopted: true,
            protocol_version: None,
        }
    }

    /// J8: names from tokens are escaped, and columns are aligned.
    #[test]
    fn sessions_are_aligned_and_escaped() {
        let sessions = [
            session(Some("mallory\u{1b}[2J"), 75, false),
            session(None, 0, true),
        ];
        let text = text(&sessions, false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("SESSION           SUBJECT"), "{text}");
        assert!(lines[1].contains("  in use  2"), "{text}");
        assert!(lines[1].contains("1day 2h  "), "{text}");
        assert!(lines[2].contains("1m 15s"), "{text}");
        assert!(lines[2].contains("mallory"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(lines[0].find("RESOURCE"), lines[1].find("https://mcp"));
    }

    /// E12: an empty list names the clients that it cannot have.
    #[test]
    fn an_empty_list_names_clients_without_sessions() {
        assert_eq!(
            text(&[], true),
            "there are no such sessions in the server's table; clients of 2026-07-28 have no sessions"
        );
        assert_eq!(
            text(&[], false),
            "there are no sessions in the server's table; clients of 2026-07-28 have no sessions"
        );
    }
}
