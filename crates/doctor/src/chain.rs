//! [`Report::chain`]: the hops of the authorization chain, from the client to the MCP server.

use crate::{Finding, Report, Step, Verdict};

/// A hop of the chain: the part of it that a step examines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Hop {
    /// From the client to the protected resource: the challenge (RFC 6750 section 3).
    Resource,
    /// From the resource to its metadata (RFC 9728).
    Metadata,
    /// From the metadata to the authorization server with this issuer, as it is shown. Without an
    /// issuer, no step has reached an authorization server.
    AuthorizationServer(Option<String>),
    /// The access token that was given, or that a sign-in has obtained.
    Token,
    /// To the MCP server behind the resource, with the token.
    Server,
}

/// The state of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopState {
    /// No step has a problem. There can be warnings.
    Works,
    /// A step has a problem.
    Fails,
    /// There is no step.
    NotExamined,
}

/// A hop with the steps that examine it, in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Link<'a> {
    /// The hop.
    pub hop: Hop,
    /// Its steps. Empty if the examination has not reached it.
    pub steps: Vec<&'a Step>,
}

impl Report {
    /// Returns the hops in the order of the chain: the resource, its metadata, each authorization
    /// server, the token if there are steps about one, and the MCP server. Hops without steps are
    /// not examined. Steps without a hop, as those of another program, are in none.
    pub fn chain(&self) -> Vec<Link<'_>> {
        let mut links: Vec<Link<'_>> = Vec::new();
        for step in &self.steps {
            let Some(hop) = &step.hop else { continue };
            match links.iter_mut().find(|link| link.hop == *hop) {
                Some(link) => link.steps.push(step),
                None => links.push(Link {
                    hop: hop.clone(),
                    steps: vec![step],
                }),
            }
        }
        for hop in [
            Hop::Resource,
            Hop::Metadata,
            Hop::AuthorizationServer(None),
            Hop::Server,
        ] {
            if !links.iter().any(|link| link.hop.rank() == hop.rank()) {
                links.push(Link {
                    hop,
                    steps: Vec::new(),
                });
            }
        }
        // Stable: the authorization servers keep the order of the metadata.
        links.sort_by_key(|link| link.hop.rank());
        links
    }
}

impl Hop {
    /// What the hop leads to, such as `authorization server`.
    pub fn target(&self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Metadata => "metadata",
            Self::AuthorizationServer(_) => "authorization server",
            Self::Token => "token",
            Self::Server => "MCP server",
        }
    }

    /// The place in the chain.
    fn rank(&self) -> u8 {
        match self {
            Self::Resource => 0,
            Self::Metadata => 1,
            Self::AuthorizationServer(_) => 2,
            Self::Token => 3,
            Self::Server => 4,
        }
    }
}

impl Link<'_> {
    /// The state of the hop.
    pub fn state(&self) -> HopState {
        if self.steps.is_empty() {
            HopState::NotExamined
        } else if self.steps.iter().any(|step| step.has_problem()) {
            HopState::Fails
        } else {
            HopState::Works
        }
    }

    /// The issuer of an authorization server, and otherwise the URL of the first request with a met
    /// rule, or of the first request. None if no request was sent.
    pub fn address(&self) -> Option<&str> {
        if let Hop::AuthorizationServer(issuer) = &self.hop {
            return issuer.as_deref();
        }
        let is_met = |step: &&&Step| {
            step.findings
                .iter()
                .any(|finding| finding.verdict == Verdict::Met)
        };
        let mut requesting = self.steps.iter().filter(|step| step.request.is_some());
        let step = requesting
            .clone()
            .find(is_met)
            .or_else(|| requesting.next())?;
        step.request.as_ref().map(|request| &*request.url)
    }

    /// The findings of all steps, in order.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.steps.iter().flat_map(|step| &step.findings)
    }

    /// The first problem, or else the first warning.
    pub fn main_finding(&self) -> Option<&Finding> {
        [Verdict::Problem, Verdict::Warning]
            .into_iter()
            .find_map(|verdict| self.findings().find(|finding| finding.verdict == verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestSummary, Rule};

    const RULE: Rule = Rule::new("a.rule", "a source");

    fn step(hop: Hop, url: &str, finding: Finding) -> Step {
        let mut step = Step::new("a step").at_hop(hop);
        let url = url::Url::parse(url).unwrap();
        step.request = Some(RequestSummary::get(&url));
        step.findings.push(finding);
        step
    }

    fn server(issuer: &str) -> Hop {
        Hop::AuthorizationServer(Some(issuer.to_owned()))
    }

    /// J9: the hops are in the order of the chain, and those that were not reached are named.
    #[test]
    fn hops_are_in_order() {
        let report = Report::new("https://a.example/mcp", Vec::new());
        let hops: Vec<_> = report.chain().into_iter().map(|link| link.hop).collect();
        assert_eq!(
            hops,
            [
                Hop::Resource,
                Hop::Metadata,
                Hop::AuthorizationServer(None),
                Hop::Server
            ]
        );

        let met = || Finding::met(RULE, "met");
        let steps = vec![
            step(Hop::Resource, "https://a.example/mcp", met()),
            step(Hop::Metadata, "https://a.example/metadata", met()),
            step(Hop::Resource, "https://a.example/mcp", met()),
            step(server("https://y.example"), "https://y.example/", met()),
            step(server("https://b.example"), "https://b.example/", met()),
            step(Hop::Token, "https://b.example/", met()),
            Step::new("a step of another program"),
        ];
        let report = Report::new("https://a.example/mcp", steps);
        let chain = report.chain();
        let hops: Vec<_> = chain.iter().map(|link| link.hop.clone()).collect();
        assert_eq!(
            hops,
            [
                Hop::Resource,
                Hop::Metadata,
                server("https://y.example"),
                server("https://b.example"),
                Hop::Token,
                Hop::Server
            ]
        );
        assert_eq!(chain[0].steps.len(), 2);
        assert_eq!(chain[2].address(), Some("https://y.example"));
        assert_eq!(chain[5].address(), None);
    }

    #[test]
    fn the_state_follows_the_most_severe_finding() {
        for (finding, state, is_main) in [
            (Finding::met(RULE, "met"), HopState::Works, false),
            (Finding::note(RULE, "note"), HopState::Works, false),
            (
                Finding::warning(RULE, "warning", "fix"),
                HopState::Works,
                true,
            ),
            (
                Finding::problem(RULE, "problem", "fix"),
                HopState::Fails,
                true,
            ),
        ] {
            let mut step = step(Hop::Resource, "https://a.example/mcp", finding.clone());
            step.findings
                .insert(0, Finding::warning(RULE, "earlier", "fix"));
            if !is_main {
                step.findings.remove(0);
            }
            let report = Report::new("https://a.example/mcp", vec![step]);
            let chain = report.chain();
            assert_eq!(chain[0].state(), state);
            assert_eq!(chain[1].state(), HopState::NotExamined);
            let main = chain[0].main_finding().map(|finding| &*finding.text);
            let expected = match finding.verdict {
                Verdict::Problem => Some("problem"),
                Verdict::Warning => Some("earlier"),
                _ => None,
            };
            assert_eq!(main, expected);
        }
    }

    /// The address of the metadata is the URL that has it, and not the first one that was tried.
    #[test]
    fn the_address_is_where_a_rule_is_met() {
        let steps = vec![
            step(
                Hop::Metadata,
                "https://a.example/first",
                Finding::note(RULE, "404"),
            ),
            step(
                Hop::Metadata,
                "https://a.example/second",
                Finding::met(RULE, "met"),
            ),
        ];
        let report = Report::new("https://a.example/mcp", steps);
        assert_eq!(
            report.chain()[1].address(),
            Some("https://a.example/second")
        );
    }
}
