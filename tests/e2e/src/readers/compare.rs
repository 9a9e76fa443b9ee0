//! Compares what a reader received with what the gateway decided and recorded.

use std::collections::HashMap;

use super::{
    audit::Decision,
    line::Line,
    names::{is_audited, is_protected},
    sender::Sent,
};

/// The results of one reader.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) sent: usize,
    /// Rejected by the gateway.
    pub(super) refused: usize,
    /// Forwarded, and understood by the reader.
    pub(super) seen: usize,
    /// Forwarded, and not understood by the reader.
    pub(super) unread: usize,
    /// Messages that the reader read differently, or with a protected name.
    pub(super) differing: usize,
    /// One line for each such message.
    pub(super) findings: Vec<String>,
}

/// Compares all lines that a reader printed with the decisions about the requests that caused them.
pub(super) fn compare(
    sent: &Sent,
    lines: &[Line],
    decisions: &HashMap<String, Decision>,
) -> Comparison {
    let mut seen: HashMap<&str, Vec<&Line>> = HashMap::new();
    lines
        .iter()
        .for_each(|line| seen.entry(line.request.as_str()).or_default().push(line));
    let mut comparison = Comparison {
        sent: sent.len(),
        ..Comparison::default()
    };
    for (request, case) in sent.requests() {
        let lines = seen.get(request);
        match (decisions.get(request), lines) {
            (Some(decision), _) if !decision.is_allowed => comparison.refused += 1,
            (_, Some(_)) => comparison.seen += 1,
            (_, None) => comparison.unread += 1,
        }
        let finding = lines.and_then(|lines| finding(lines, decisions.get(request)));
        comparison.add(finding.map(|finding| {
            format!(
                "{}: {finding}\n            {}",
                case.label,
                case.body_shown()
            )
        }));
    }

    // Requests without a response in time: only the reader has their identifiers.
    for (request, lines) in seen
        .iter()
        .filter(|(request, _)| !sent.has_response(request))
    {
        let finding = finding(lines, decisions.get(*request));
        comparison
            .add(finding.map(|finding| {
                format!("request {request}, without a response in time: {finding}")
            }));
    }
    comparison
}

impl Comparison {
    fn add(&mut self, finding: Option<String>) {
        self.differing += usize::from(finding.is_some());
        self.findings.extend(finding);
    }
}

/// Returns the finding about one request, if any.
fn finding(lines: &[&Line], decision: Option<&Decision>) -> Option<String> {
    if decision.is_some_and(|decision| decision.is_privileged) {
        return None;
    }
    for line in lines {
        if let Some(name) = line
            .names
            .iter()
            .find(|name| is_protected(&line.method, name))
        {
            return Some(format!(
                "the reader acts on the protected name {name:?} of {:?}",
                line.method
            ));
        }
        let Some(decision) = decision else {
            return Some("nothing is audited".to_owned());
        };
        if !decision.is_allowed {
            return Some(format!(
                "refused with {}, and the reader got it",
                decision.code
            ));
        }
        let method = decision.method.as_deref();
        if !method.is_some_and(|method| is_audited("tools/call", &line.method, method)) {
            return Some(format!(
                "the reader's method is {:?}, the audited one {method:?}",
                line.method
            ));
        }
        let is_recorded = |name: &str| {
            decision
                .names
                .iter()
                .any(|audited| is_audited(&line.method, name, audited))
        };
        let is_known = |name: &&String| decision.has_more_names || is_recorded(name);
        if let Some(name) = line.names.iter().find(|name| !is_known(name)) {
            return Some(format!(
                "the reader's name of {:?} is {name:?}, the audited ones {:?}",
                line.method, decision.names
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(method: &str, names: &[&str]) -> Line {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Line {
            request: "r".to_owned(),
            method: method.to_owned(),
            names,
        }
    }

    fn allowed(method: &str, names: &[&str]) -> Decision {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Decision {
            is_allowed: true,
            method: Some(method.to_owned()),
            names,
            ..Decision::default()
        }
    }

    fn found(line: &Line, decision: Option<&Decision>) -> Option<String> {
        finding(&[line], decision)
    }

    #[test]
    fn what_was_audited_is_in_order() {
        assert_eq!(
            found(
                &line("tools/call", &["echo"]),
                Some(&allowed("tools/call", &["echo"]))
            ),
            None
        );
        assert_eq!(
            found(&line("tools/list", &[]), Some(&allowed("tools/list", &[]))),
            None
        );
        let privileged = Decision {
            is_privileged: true,
            ..allowed("tools/call", &["admin_wipe"])
        };
        assert_eq!(
            found(&line("tools/call", &["admin_wipe"]), Some(&privileged)),
            None
        );
    }

    #[test]
    fn other_methods_other_names_and_protected_names_are_found() {
        let echo = allowed("tools/call", &["echo"]);
        for (line, decision) in [
            (line("tools/list", &[]), Some(&echo)),
            (line("tools/call", &["other"]), Some(&echo)),
            (
                line("tools/call", &["admin_wipe"]),
                Some(&allowed("tools/call", &["admin_wipe"])),
            ),
            (line("tools/call", &["echo"]), None),
            (
                line("tools/call", &["echo"]),
                Some(&Decision {
                    is_allowed: false,
                    ..echo.clone()
                }),
            ),
            (
                line("completion/complete", &["greeting"]),
                Some(&allowed("completion/complete", &[])),
            ),
        ] {
            assert!(found(&line, decision).is_some(), "{line:?} {decision:?}");
        }
    }
}
