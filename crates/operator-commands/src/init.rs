//! `portcullis init`: asks for the values of a configuration, tests them, and writes it with
//! comments.

mod answers;
mod broker;
mod issuer;
mod provider;
mod questions;
mod setup;
mod source;
mod target;
mod template;
mod typed_url;
mod values;

use anyhow::bail;
use portcullis_discovery::Product;
use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::EscapedText;
use portcullis_terminal::{print, print_warning};
use url::Url;

use self::{
    broker::{BrokerValues, PAGE, needs_allow},
    questions::Questions,
    setup::Setup,
    source::kind_of,
    target::Target,
    values::Values,
};
use crate::cli;

/// Asks, tests and writes. Fails when an answer is invalid or missing, the tests find problems that
/// the user does not accept, or the file cannot be written. Nothing is written then, unless only
/// the directory cannot be synchronized or the next steps cannot be printed.
pub(crate) fn run(arguments: &cli::Init, product: Product) -> anyhow::Result<()> {
    let mut questions = Questions::in_terminal();
    if questions.is_none() {
        require_options(arguments)?;
    }
    let target = Target::open(&arguments.config, arguments.force, questions.as_mut())?;
    let mut setup = Setup::new(arguments, product, questions)?;
    setup.ask_all()?;
    let (values, plan) = setup.finish()?;
    target.write(&template::text(&values))?;

    for warning in &plan.warnings {
        print_warning(&warning.text)?;
    }
    let provider = values.issuer.as_ref().and_then(provider::of);
    if let Some(provider) = provider {
        print(format_args!(
            "See {} for the settings of your provider, in comments of the file.",
            provider.guide()
        ))?;
    }
    let config = target.option();
    if let Some(broker) = &values.broker {
        print_application(broker, &values)?;
        print("Next:")?;
        print(format_args!(
            "  export {}=...    the secret of the application",
            broker.secret_variable
        ))?;
    } else {
        print("Next:")?;
    }
    if let Some(target) = values.proxy_target() {
        print(format_args!("  your proxy must send to {target}"))?;
    }
    print(format_args!("  portcullis check --online{config}"))?;
    print(format_args!("  portcullis serve{config}"))?;
    print(format_args!(
        "  portcullis doctor {}",
        EscapedText(&values.resource())
    ))?;
    Ok(())
}

/// Prints what to register at the provider, and where.
fn print_application(broker: &BrokerValues, values: &Values) -> std::io::Result<()> {
    print(format_args!(
        "Register this redirect URI at the provider: {}",
        EscapedText(&broker.redirect_uri(&values.base_url))
    ))?;
    print(format_args!(
        "  in {}",
        broker.source.redirect_uri_setting()
    ))?;
    print(format_args!("See {PAGE}"))
}

/// Returns the kind of provider that the options name: `--broker-kind`, or that of the issuer.
/// `None` without a broker.
fn kind_of_provider(arguments: &cli::Init) -> Option<ProviderKind> {
    let of_issuer = || {
        let issuer = arguments.issuer.as_deref().filter(|_| arguments.broker)?;
        Url::parse(&typed_url::for_clients(issuer))
            .ok()
            .map(|url| kind_of(&url))
    };
    arguments.broker_kind.or_else(of_issuer)
}

/// Without a terminal, nothing can be asked.
fn require_options(arguments: &cli::Init) -> anyhow::Result<()> {
    let required = [
        ("--base-url", arguments.base_url.is_some()),
        ("--upstream", arguments.upstream.is_some()),
        (
            "--issuer",
            arguments.issuer.is_some() || arguments.broker_kind_without_issuer().is_some(),
        ),
        (
            "--broker-client-id",
            !arguments.wants_broker() || arguments.broker_client_id.is_some(),
        ),
        (
            "--broker-allow",
            !arguments.broker_allow.is_empty()
                || !kind_of_provider(arguments).is_some_and(needs_allow),
        ),
    ];
    let missing: Vec<&str> = required
        .iter()
        .filter(|(_, is_given)| !is_given)
        .map(|(option, _)| *option)
        .collect();
    if !missing.is_empty() {
        bail!(
            "there is no terminal to ask in; give {} too (see --help)",
            missing.join(", ")
        );
    }
    Ok(())
}
