//! The table: one row for each peer, one cell for each command.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::peer::Peer;
use crate::cell::Cell;

/// One peer.
pub(super) struct Row {
    pub(super) peer: Peer,
    pub(super) login: Cell,
    pub(super) connect: Cell,
}

/// All rows so far.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub(super) struct Report(Vec<Row>);

impl Row {
    /// Returns a peer at which both commands have the same result.
    pub(super) fn same(peer: Peer, cell: Cell) -> Self {
        Self {
            peer,
            login: cell.clone(),
            connect: cell,
        }
    }

    fn cells(&self) -> [(&'static str, &Cell); 2] {
        [("login", &self.login), ("connect", &self.connect)]
    }
}

impl Report {
    pub(super) fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    /// Checks that a cell passed, and none failed. Fails when a cell failed, or all were skipped.
    pub(super) fn result(&self) -> anyhow::Result<()> {
        Cell::check_all(self.0.iter().flat_map(Row::cells).map(|(_, cell)| cell))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<30}{:<16}{}",
            self.peer.title(),
            self.login,
            self.connect
        )?;
        let indented = |reason: &str| reason.trim_end().replace('\n', "\n    ");
        if let (Some(login), Some(connect)) = (self.login.reason(), self.connect.reason())
            && login == connect
        {
            return write!(f, "\n    {}", indented(login));
        }
        let mut reasons = self
            .cells()
            .into_iter()
            .filter_map(|(command, cell)| Some((command, cell.reason()?)));
        reasons.try_for_each(|(command, reason)| write!(f, "\n    {command}: {}", indented(reason)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<30}{:<16}connect", "peer", "login")?;
        self.0.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("Row", 4)?;
        row.serialize_field("peer", &self.peer)?;
        row.serialize_field("title", self.peer.title())?;
        row.serialize_field("login", &self.login)?;
        row.serialize_field("connect", &self.connect)?;
        row.end()
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn row(login: Cell, connect: Cell) -> Row {
        Row {
            peer: Peer::LikeEntra,
            login,
            connect,
        }
    }

    #[test]
    fn a_skipped_peer_is_shown_with_its_reason_and_never_passes() {
        let skipped = Cell::Skipped {
            reason: "python3 is not here".into(),
        };
        let mut report = Report::default();
        report.add(Row::same(Peer::PythonSdk, skipped));
        assert!(report.result().is_err());
        assert_eq!(report.to_string().matches("python3 is not here").count(), 1);
        report.add(row(
            Cell::Passed { seconds: 1.0 },
            Cell::Passed { seconds: 2.0 },
        ));
        assert!(report.result().is_ok());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json[0]["login"]["result"], "skipped");
        assert_eq!(json[1]["peer"], "like-entra");
    }

    #[test]
    fn a_failed_cell_fails_the_run() {
        let mut report = Report::default();
        report.add(row(
            Cell::Passed { seconds: 1.0 },
            Cell::failed(&anyhow!("no token")),
        ));
        assert!(report.result().is_err());
        assert!(report.to_string().contains("connect: no token"));
    }
}
