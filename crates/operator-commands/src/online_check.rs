//! `portcullis check --online`: queries the services that a configuration names.

mod certificate;
mod listener;
mod mcp;
mod providers;
mod public_address;
mod upstream;
mod upstream_connection;
mod upstream_issuers;

use std::{io, sync::Arc, time::Duration};

use portcullis_config::plan::{IssuerPlan, Plan, ResourcePlan, UpstreamPlan};
use portcullis_discovery::{Fetch, FetchSettings, HttpFetch, Product};
use portcullis_doctor::{
    ConfiguredIssuer, ConfiguredResource, Doctor, Finding, IssuerPurpose, Report, Rule, Step,
};
use portcullis_metadata::EscapedText;
use portcullis_terminal::{print_step, tell};

/// The time limit of each request.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);

const SETTINGS: Rule = Rule::new("issuer.settings", "docs/use/configuration-issuers.md");

pub(crate) use upstream::suggests_sessions_off;
pub(crate) use upstream_issuers::upstream_issuers;

/// A part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Listener,
    /// The address that clients use, together with [`Part::Listener`].
    PublicAddress,
    Issuers,
    /// The identity providers of the broker.
    Providers,
    Upstreams,
}

impl Part {
    pub(crate) const ALL: [Self; 5] = [
        Self::Listener,
        Self::PublicAddress,
        Self::Issuers,
        Self::Providers,
        Self::Upstreams,
    ];
}

/// Queries the services of these parts of a plan, one after the other. Prints the progress to
/// standard error and, if `prints_steps`, each step to standard output when it is complete. Fails
/// when standard output is closed.
pub(crate) async fn examine_and_print(
    parts: &[Part],
    plan: &Plan,
    base_url: &str,
    product: Product,
    prints_steps: bool,
) -> io::Result<Report> {
    let mut printed = Ok(());
    let mut on_start = |name: &str| tell(format_args!("checking {name}"));
    let mut on_step = |step: &Step| {
        if prints_steps && printed.is_ok() {
            printed = print_step(step);
        }
    };
    let report = examine(parts, plan, base_url, product, &mut on_start, &mut on_step).await;
    printed.map(|()| report)
}

/// Each step is passed to `on_step` when it is complete; `on_start` gets the name of what is
/// queried next.
async fn examine(
    parts: &[Part],
    plan: &Plan,
    base_url: &str,
    product: Product,
    on_start: &mut dyn FnMut(&str),
    on_step: &mut (dyn FnMut(&Step) + Send),
) -> Report {
    let mut steps = Steps {
        done: Vec::new(),
        on_step,
    };
    if parts.contains(&Part::Listener) {
        on_start(&format!("the listener on {}", plan.listen));
        let listener = listener::check(plan, base_url).await;
        steps.add(listener.step);
        certificate::check(plan)
            .into_iter()
            .for_each(|step| steps.add(step));
        if parts.contains(&Part::PublicAddress) {
            let port = listener.port;
            let step = public_address::check(plan, base_url, port, product, on_start).await;
            step.into_iter().for_each(|step| steps.add(step));
        }
    }
    for (position, issuer) in plan
        .issuers
        .iter()
        .enumerate()
        .filter(|_| parts.contains(&Part::Issuers))
    {
        on_start(&format!(
            "issuer {}",
            EscapedText(issuer.settings.issuer.as_str())
        ));
        examine_issuer(plan, position, issuer, product, &mut steps).await;
    }
    if let Some(broker) = plan
        .broker
        .as_ref()
        .filter(|_| parts.contains(&Part::Providers))
    {
        providers::examine(broker, product, on_start, &mut steps).await;
    }
    for (position, resource) in plan
        .resources
        .iter()
        .enumerate()
        .filter(|_| parts.contains(&Part::Upstreams))
    {
        let UpstreamPlan::Http(settings) = &resource.upstream else {
            continue;
        };
        on_start(&format!("the upstream of {}", resource.endpoint));
        upstream::examine(
            &format!("resource[{position}]"),
            resource,
            settings,
            product.version,
            &mut steps,
        )
        .await;
    }
    Report::new(base_url, steps.done)
}

async fn examine_issuer(
    plan: &Plan,
    position: usize,
    issuer: &IssuerPlan,
    product: Product,
    steps: &mut Steps<'_>,
) {
    let key = format!("issuer[{position}]");
    let Some(fetch) = fetch(&key, &issuer.fetch, product, steps) else {
        return;
    };
    let resources = plan
        .resources
        .iter()
        .filter(|resource| resource.issuers.contains(&position));
    let resources = resources.map(configured_resource).collect();
    let configured = ConfiguredIssuer {
        key: &key,
        settings: &issuer.settings,
        purpose: IssuerPurpose::AccessTokens,
        resources,
    };
    let examined = Doctor::new(fetch)
        .examine_issuer(&configured, steps.on_step)
        .await;
    steps.done.extend(examined);
}

/// Returns how the issuer or provider with this key is reached. `None`, with a problem, if the
/// settings cannot be used.
fn fetch(
    key: &str,
    settings: &FetchSettings,
    product: Product,
    steps: &mut Steps<'_>,
) -> Option<Arc<dyn Fetch>> {
    let mut settings = settings.clone();
    settings.user_agent = Some(product.to_string());
    match HttpFetch::new(settings) {
        Ok(fetch) => Some(Arc::new(fetch)),
        Err(error) => {
            let mut step = Step::new(format!("the settings of {key}"));
            step.findings.push(Finding::problem(
                SETTINGS,
                error.to_string(),
                "correct ca_file or proxy",
            ));
            steps.add(step);
            None
        }
    }
}

fn configured_resource(resource: &ResourcePlan) -> ConfiguredResource<'_> {
    let rules = resource.rules.iter().map(|rule| &rule.scopes);
    let routes = resource.routes.iter().map(|route| &route.scopes);
    let required = rules
        .chain(routes)
        .chain([&resource.required_scopes])
        .flat_map(|scopes| scopes.iter());
    let ResourcePlan {
        endpoint, metadata, ..
    } = resource;
    let scopes = required
        .chain(metadata.scopes_supported.iter().map(String::as_str))
        .collect();
    ConfiguredResource {
        endpoint,
        resource: &metadata.resource,
        scopes,
    }
}

/// The steps so far.
struct Steps<'a> {
    done: Vec<Step>,
    on_step: &'a mut (dyn FnMut(&Step) + Send),
}

impl Steps<'_> {
    fn add(&mut self, step: Step) {
        (self.on_step)(&step);
        self.done.push(step);
    }
}
