//! The limit of open files (RLIMIT_NOFILE): raises it for a plan, or reduces the plan to fit it.

use portcullis_gateway::ConnectionLimit;

use crate::plan::{Plan, UpstreamPlan};

/// The number of open files other than connections: standard streams, the listener, the logs, certificates, key files,
/// the control runtime, name resolution, and one connection that is being accepted.
const BASE_RESERVE: usize = 64;
/// The number of files of one worker's runtime.
const WORKER_RESERVE: usize = 8;
/// The number of connections to one issuer, in addition to those for introspection.
const ISSUER_RESERVE: usize = 4;

/// Raises the process's limit of open files for the plan, at most to the hard limit. If that is not enough, lowers the
/// plan's connection limits in proportion. Returns `None` if nothing is lowered.
pub(super) fn fit(plan: &mut Plan) -> Option<Shortage> {
    let wanted = Files::wanted(plan);
    let limit = raise(wanted.total())?;
    let fitted = wanted.fitted(limit)?;
    plan.limits.max_connections = fitted.clients;
    let upstreams = plan.resources.iter_mut().filter_map(|resource| match &mut resource.upstream {
        UpstreamPlan::Http(settings) => Some(settings),
        UpstreamPlan::Demo => None,
    });
    upstreams.zip(&fitted.upstreams).for_each(|(settings, max)| settings.connection_limit = ConnectionLimit::new(*max));
    Some(Shortage { limit, wanted, fitted })
}

/// A limit of open files that is too low for the configured plan.
pub(super) struct Shortage {
    limit: usize,
    wanted: Files,
    fitted: Files,
}

impl Shortage {
    /// Logs the lowered limits and the fix.
    pub(super) fn warn(&self) {
        let Self { limit, wanted, fitted } = self;
        let needed = wanted.total();
        tracing::warn!(
            files.limit = limit,
            files.needed = needed,
            "the limit of open files is {limit}, and {needed} are needed: limits.max_connections is lowered from {} to {}, and \
             the connections of upstreams from {:?} to {:?}; raise the hard limit to {needed} (ulimit -Hn {needed}, or \
             LimitNOFILE={needed} in the systemd unit), or lower limits.max_connections and limits.upstream_connections",
            wanted.clients,
            fitted.clients,
            wanted.upstreams,
            fitted.upstreams,
        );
    }
}

/// The number of files by purpose.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    reserve: usize,
    /// Connections of clients.
    clients: usize,
    /// Connections to each upstream.
    upstreams: Vec<usize>,
}

impl Files {
    fn wanted(plan: &Plan) -> Self {
        let introspection = |issuer: &crate::plan::IssuerPlan| {
            issuer.settings.validation.introspection().map_or(0, |introspection| introspection.max_in_flight)
        };
        let issuers: usize = plan.issuers.iter().map(|issuer| ISSUER_RESERVE + introspection(issuer)).sum();
        let upstreams = plan.resources.iter().filter_map(|resource| match &resource.upstream {
            UpstreamPlan::Http(settings) => Some(settings.connection_limit.max()),
            UpstreamPlan::Demo => None,
        });
        Self {
            reserve: BASE_RESERVE + WORKER_RESERVE * plan.workers + issuers,
            clients: plan.limits.max_connections,
            upstreams: upstreams.collect(),
        }
    }

    fn connections(&self) -> usize {
        self.upstreams.iter().fold(self.clients, |sum, max| sum.saturating_add(*max))
    }

    fn total(&self) -> usize {
        self.connections().saturating_add(self.reserve)
    }

    /// Lowers the connections in proportion to at most `limit` files, each to at least 1. Returns `None` if they
    /// already fit.
    fn fitted(&self, limit: usize) -> Option<Self> {
        if self.total() <= limit {
            return None;
        }
        let available = limit.saturating_sub(self.reserve) as u128;
        let wanted = self.connections() as u128;
        let share = |max: &usize| usize::try_from(*max as u128 * available / wanted).map_or(1, |share| share.max(1));
        Some(Self {
            reserve: self.reserve,
            clients: share(&self.clients),
            upstreams: self.upstreams.iter().map(share).collect(),
        })
    }
}

/// Raises the soft limit to `needed` if it is lower, at most to the hard limit. Returns the resulting limit, or `None`
/// if there is none.
#[cfg(unix)]
fn raise(needed: usize) -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let soft = current?;
    let needed = needed as u64;
    let target = maximum.map_or(needed, |hard| hard.min(needed));
    let raised = soft < target
        && setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum })
            .inspect_err(|error| tracing::warn!(error = %error, "the limit of open files cannot be raised"))
            .is_ok();
    usize::try_from(if raised { target } else { soft }).ok()
}

#[cfg(not(unix))]
fn raise(_needed: usize) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn files(clients: usize, upstreams: &[usize]) -> Files {
        Files { reserve: 80, clients, upstreams: upstreams.into() }
    }

    /// L9: connections are lowered in proportion, and only if they do not fit.
    #[test]
    fn connections_are_lowered_in_proportion() {
        assert_eq!(files(10_000, &[10_000]).fitted(20_080), None);
        assert_eq!(files(10_000, &[10_000]).fitted(256), Some(files(88, &[88])));
        assert_eq!(files(10_000, &[5_000, 5_000]).fitted(1_080), Some(files(500, &[250, 250])));
        assert_eq!(files(100, &[]).fitted(130), Some(files(50, &[])));
        assert_eq!(files(10_000, &[10_000]).fitted(20), Some(files(1, &[1])), "never 0");
    }

    proptest! {
        /// L9: the lowered connections fit, unless the limit is too low for one connection each.
        #[test]
        fn fitted_connections_fit(clients in 1_usize..=1_000_000, upstreams in prop::collection::vec(1_usize..=1_000_000, 0..8), limit in 0_usize..3_000_000) {
            let wanted = files(clients, &upstreams);
            let fitted = wanted.fitted(limit).unwrap_or(wanted);
            prop_assert!(fitted.total() <= limit.max(fitted.reserve + 1 + upstreams.len()) + upstreams.len() + 1);
            prop_assert!(fitted.clients >= 1);
            prop_assert!(fitted.upstreams.iter().all(|max| *max >= 1));
        }
    }
}
