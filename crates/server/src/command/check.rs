//! `portcullis check`: validates a configuration and prints every value with its origin.

use owo_colors::{OwoColorize as _, Stream};

use crate::{
    cli,
    config::{self, Loaded, Overrides},
    plan::Plan,
    serve,
};

pub(crate) fn run(arguments: &cli::Check) -> anyhow::Result<()> {
    let loaded = config::load(&arguments.config, Overrides::default())?;
    let plan = Plan::new(&loaded.config)?;
    super::control_runtime()?.block_on(async { serve::dry_run(&plan) })?;
    if arguments.json { json(&loaded, &plan) } else { human(&loaded, &plan) }
}

fn json(loaded: &Loaded, plan: &Plan) -> anyhow::Result<()> {
    let values = config::effective(loaded)?;
    let report = serde_json::json!({ "values": values, "warnings": plan.warnings, "notes": plan.notes });
    super::print_json(&report)
}

fn human(loaded: &Loaded, plan: &Plan) -> anyhow::Result<()> {
    let values = config::effective(loaded)?;
    let width = values.iter().map(|value| value.key.len()).max().unwrap_or_default();
    for value in &values {
        let origin = format!("# {}", value.origin);
        let origin = origin.if_supports_color(Stream::Stdout, |text| text.dimmed());
        super::print(format_args!("{:width$} = {}  {origin}", value.key, value.value))?;
    }
    for warning in &plan.warnings {
        super::print(format_args!("{} {warning}", "warning:".if_supports_color(Stream::Stdout, |text| text.yellow())))?;
    }
    for note in &plan.notes {
        super::print(format_args!("{} {note}", "note:".if_supports_color(Stream::Stdout, |text| text.cyan())))?;
    }
    Ok(super::print("the configuration is valid")?)
}
