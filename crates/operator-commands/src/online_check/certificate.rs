//! Whether the server's own certificates are valid, and for the host of `base_url`.

use portcullis_config::plan::{Plan, TlsFiles, date};
use portcullis_doctor::{Finding, Rule, Step};
use portcullis_metadata::{Clock as _, SystemClock};

const CERTIFICATE: Rule = Rule::new("tls.certificate", "RFC 5280 section 4.1.2.5");
const NAME: Rule = Rule::new("tls.name", "RFC 9525 section 6");

/// Checks the certificates of `[tls]` and `[admin.tls]`. A certificate that expires soon has a
/// warning of the plan.
pub(super) fn check(plan: &Plan) -> Vec<Step> {
    let of_administrators = plan.admin.as_ref().and_then(|admin| admin.tls.as_ref());
    plan.tls
        .iter()
        .chain(of_administrators)
        .map(of_files)
        .collect()
}

fn of_files(files: &TlsFiles) -> Step {
    let mut step = Step::new(format!("the certificate of [{}]", files.table()));
    let rejected = files
        .invalidity(SystemClock::new().now())
        .filter(|found| found.is_rejected);
    if let Some(found) = files.other_name() {
        step.findings
            .push(Finding::problem(NAME, &found.text, found.fix));
    }
    step.findings.push(match (rejected, files.validity()) {
        (Some(found), _) => Finding::problem(CERTIFICATE, found.text, found.fix),
        (None, Some(validity)) => Finding::met(
            CERTIFICATE,
            format!("it is valid until {}", date(validity.until)),
        ),
        (None, None) => Finding::note(CERTIFICATE, "its dates cannot be read"),
    });
    step
}
