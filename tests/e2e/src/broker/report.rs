//! [`Report`]: the table of the clients at all providers.

use std::fmt;

use super::{client::Maker, provider::Provider};
use crate::cell::Cell;

const PROVIDER_WIDTH: usize = 28;
const CELL_WIDTH: usize = 15;

/// A row for each provider, and a column for each client.
pub(super) struct Report {
    providers: Vec<Provider>,
    columns: Vec<(Maker, Vec<Cell>)>,
}

impl Report {
    pub(super) fn new(providers: &[Provider]) -> Self {
        Self {
            providers: providers.to_vec(),
            columns: Vec::new(),
        }
    }

    /// Adds a client with its result at each provider.
    pub(super) fn add(&mut self, maker: Maker, cells: Vec<Cell>) {
        self.columns.push((maker, cells));
    }

    /// Fails when a cell failed, or all were skipped.
    pub(super) fn result(&self) -> anyhow::Result<()> {
        Cell::check_all(self.columns.iter().flat_map(|(_, cells)| cells))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (maker, _) in &self.columns {
            writeln!(f, "{:<8}{}", maker.name(), maker.title())?;
        }
        write!(f, "\n{:<PROVIDER_WIDTH$}", "provider")?;
        for (maker, _) in &self.columns {
            write!(f, "{:<CELL_WIDTH$}", maker.name())?;
        }
        writeln!(f)?;
        for (row, provider) in self.providers.iter().enumerate() {
            write!(f, "{:<PROVIDER_WIDTH$}", provider.title())?;
            let cells = self.columns.iter().filter_map(|(_, cells)| cells.get(row));
            for cell in cells {
                write!(f, "{cell:<CELL_WIDTH$}")?;
            }
            writeln!(f)?;
        }
        for (row, provider) in self.providers.iter().enumerate() {
            for (maker, cells) in &self.columns {
                if let Some(reason) = cells.get(row).and_then(Cell::reason) {
                    let reason = reason.trim_end().replace('\n', "\n    ");
                    writeln!(f, "\n{}, {}\n    {reason}", provider.title(), maker.title())?;
                }
            }
        }
        Ok(())
    }
}
