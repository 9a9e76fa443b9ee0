//! `portcullis call URL METHOD [PARAMS]`.

use crate::cli;

pub(crate) fn run(_arguments: &cli::Call) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
