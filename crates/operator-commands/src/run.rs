//! Runs an operator command.

use std::process::ExitCode;

use portcullis_serve::Program;
use portcullis_telemetry::LogFormat;
use portcullis_terminal::CommandError;

use crate::{
    admin, audit, check,
    cli::{AuditCommand, OperatorCommand},
    command_error, health, init, serve,
};
#[cfg(feature = "dev")]
use crate::{demo, idp};

impl OperatorCommand {
    /// Runs the command in this program. A server writes its access lines in this format.
    ///
    /// # Errors
    /// When the command fails. The text contains the fix.
    pub fn run(self, program: Program, log_format: LogFormat) -> Result<ExitCode, CommandError> {
        let result = match self {
            Self::Serve(arguments) => {
                serve::run(&arguments, program, log_format).map(|()| ExitCode::SUCCESS)
            }
            #[cfg(feature = "dev")]
            Self::Demo(arguments) => {
                demo::run(&arguments, program, log_format).map(|()| ExitCode::SUCCESS)
            }
            Self::Check(arguments) => check::run(&arguments, program.product),
            Self::ConfigSchema => check::print_schema(),
            Self::Admin(arguments) => admin::run(&arguments),
            Self::Init(arguments) => {
                init::run(&arguments, program.product).map(|()| ExitCode::SUCCESS)
            }
            Self::Health(arguments) => health::run(&arguments).map(|()| ExitCode::SUCCESS),
            #[cfg(feature = "dev")]
            Self::Idp(arguments) => idp::run(arguments).map(|()| ExitCode::SUCCESS),
            #[cfg(not(feature = "dev"))]
            Self::Demo(_) => Err(anyhow::anyhow!(portcullis_config::without_dev(
                "`portcullis demo`"
            ))),
            #[cfg(not(feature = "dev"))]
            Self::Idp(_) => Err(anyhow::anyhow!(portcullis_config::without_dev(
                "`portcullis idp`"
            ))),
        };
        result.map_err(command_error)
    }
}

impl AuditCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// When the command fails. The text contains the fix.
    pub fn run(self) -> Result<ExitCode, CommandError> {
        let Self::Verify(arguments) = self;
        audit::verify(&arguments).map_err(command_error)
    }
}
