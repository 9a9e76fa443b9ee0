//! `portcullis check`: validates a configuration and prints every value with its origin.

mod service_user;

use std::{io, process::ExitCode};

use owo_colors::{OwoColorize as _, Stream};
use portcullis_config::{
    ConfigErrors, Diagnostic, KeyPath, Loaded, Located, Overrides, plan::Plan,
};
use portcullis_doctor::{Report as OnlineReport, Verdict};
use portcullis_serve::{Persistence, Product, runnable_plan};
use portcullis_terminal::{counted, print_json, print_note, print_warning};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{cli, online_check};

/// The exit code with warnings and `--deny-warnings`.
const WARNINGS: u8 = 2;

pub(crate) fn run(arguments: &cli::Check, product: Product) -> anyhow::Result<ExitCode> {
    if arguments.schema {
        return print_schema();
    }
    let runtime = crate::control_runtime()?;
    let (loaded, plan) = match valid(arguments, &runtime) {
        Ok(valid) => valid,
        Err(errors) if arguments.json => {
            print_json(&Report {
                errors: errors.0,
                ..Report::default()
            })?;
            return Ok(ExitCode::FAILURE);
        }
        Err(errors) => return Err(errors.into()),
    };
    let of_service = service_user::warnings(&arguments.config, &loaded.config);
    let of_service = of_service
        .iter()
        .map(|text| Diagnostic::new(&KeyPath::default(), text));
    let warnings = plan.warnings.iter().cloned().chain(of_service).collect();
    let online = match arguments.online {
        true => {
            let base_url = &loaded.config.base_url;
            let examined = online_check::examine_and_print(
                &online_check::Part::ALL,
                &plan,
                base_url,
                product,
                !arguments.json,
            );
            Some(runtime.block_on(examined)?)
        }
        false => None,
    };
    let report = Report {
        values: portcullis_config::effective(&loaded)?,
        errors: Vec::new(),
        warnings: loaded.places.locate(warnings),
        notes: plan.notes,
        online,
    };
    let result = report.result(arguments.deny_warnings);
    if arguments.json {
        print_json(&report)?;
    } else {
        report.print(&result)?;
    }
    Ok(result.exit_code())
}

/// Prints the JSON Schema of the configuration.
pub(crate) fn print_schema() -> anyhow::Result<ExitCode> {
    print_json(portcullis_config::schema())?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration, with everything that can be validated without the network.
fn valid(arguments: &cli::Check, runtime: &Runtime) -> Result<(Loaded, Plan), ConfigErrors> {
    let loaded = crate::load(&arguments.config, Overrides::default())?;
    match runnable_plan(&loaded.config) {
        Ok(plan) => match runtime.block_on(Persistence::examine(&plan)) {
            found if found.is_empty() => Ok((loaded, plan)),
            found => Err(ConfigErrors(loaded.places.locate(found))),
        },
        Err(errors) => Err(ConfigErrors(loaded.places.locate(errors))),
    }
}

enum CheckResult {
    Good,
    /// Services have problems.
    Problems,
    /// There are warnings, which `--deny-warnings` rejects.
    Denied(usize),
}

impl CheckResult {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Good => ExitCode::SUCCESS,
            Self::Problems => ExitCode::FAILURE,
            Self::Denied(_) => ExitCode::from(WARNINGS),
        }
    }
}

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    /// Every value. Empty if there are errors.
    values: Vec<portcullis_config::Effective>,
    errors: Vec<Located>,
    warnings: Vec<Located>,
    notes: Vec<String>,
    /// The steps of `--online`.
    #[serde(skip_serializing_if = "Option::is_none")]
    online: Option<OnlineReport>,
}

impl Report {
    fn result(&self, denies_warnings: bool) -> CheckResult {
        let online = self.online.as_ref();
        let warnings =
            self.warnings.len() + online.map_or(0, |online| online.count(Verdict::Warning));
        if online.is_some_and(|online| online.first_problem().is_some()) {
            CheckResult::Problems
        } else if denies_warnings && warnings > 0 {
            CheckResult::Denied(warnings)
        } else {
            CheckResult::Good
        }
    }

    fn print(&self, result: &CheckResult) -> io::Result<()> {
        // The steps are already printed, and are not buried among the values.
        let values = if self.online.is_none() {
            self.values.as_slice()
        } else {
            &[]
        };
        let width = values
            .iter()
            .map(|value| value.key.len())
            .max()
            .unwrap_or_default();
        for value in values {
            let origin = format!("# {}", value.origin);
            let origin = origin.if_supports_color(Stream::Stdout, |text| text.dimmed());
            let shown = match &value.value {
                Value::Null => "not set".to_owned(),
                set => set.to_string(),
            };
            portcullis_terminal::print(format_args!("{:width$} = {shown}  {origin}", value.key))?;
        }
        for warning in &self.warnings {
            print_warning(&warning.to_string())?;
        }
        for note in &self.notes {
            print_note(note)?;
        }
        if let Some(online) = &self.online {
            portcullis_terminal::print_summary(online, self.warnings.len())?;
        }
        match result {
            CheckResult::Good => portcullis_terminal::print("the configuration is valid"),
            CheckResult::Problems => portcullis_terminal::print(
                "the configuration is valid, and services that it names have problems",
            ),
            CheckResult::Denied(count) => {
                let warnings = counted(*count, "warning");
                portcullis_terminal::print(format_args!(
                    "there are {warnings}, which --deny-warnings rejects"
                ))
            }
        }
    }
}
