//! The check of `cargo xtask ci` that compares the instructions of a request with the committed
//! table.

use xtask::{
    checklist::Outcome,
    instructions::{Environment, Table},
    programs, workspace,
};

use crate::tool::{self, Tool};

/// Compares. The result is [`Outcome::NotRun`] where counts cannot be compared with the table.
/// Fails when a case has changed by more than 1 %.
pub(crate) fn check() -> anyhow::Result<Outcome> {
    if let Some(why) = obstacle()? {
        println!("not run: {why}");
        return Ok(Outcome::NotRun);
    }
    Tool::INSTRUCTIONS.run(&tool::Arguments::of(&["--check"]))?;
    Ok(Outcome::Passed)
}

fn obstacle() -> anyhow::Result<Option<String>> {
    let Some(valgrind) = programs::find("valgrind") else {
        return Ok(Some(
            "valgrind is not installed (Debian: apt install valgrind)".to_owned(),
        ));
    };
    let table = Table::read(&workspace::root())?;
    Ok(table
        .environment
        .difference(&Environment::of_this_machine(&valgrind)?))
}
