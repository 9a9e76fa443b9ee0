//! The command lines of `demo` and `idp` in packages without the feature `dev`: any arguments, for
//! an error that says which packages have the commands.

use clap::Args;

#[derive(Args)]
pub struct Demo {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

#[derive(Args)]
pub struct Idp {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}
