//! The limit of open files (RLIMIT_NOFILE): raises it for a plan, or reduces the plan to fit it.

use std::fmt;

use portcullis_config::plan::{Plan, UpstreamPlan};
use portcullis_gateway::ConnectionLimit;

/// The number of open files other than connections, for the whole process:
///
/// - 3 standard streams,
/// - 2 for the listener of clients and one connection that is being accepted,
/// - 18 for the listener of administrators, its 16 connections and one that is being accepted,
/// - 8 for the control runtime and its signals,
/// - 4 for the access log and the audit file, each with its successor while it is reopened,
/// - 2 for the journal and its replacement,
/// - 3 for the configuration, a certificate and a key that are read at a reload, and then for the
///   listeners that it binds,
/// - 2 for the connections to Redis and to the collector of traces,
/// - 22 for name resolution.
const BASE_RESERVE: usize = 3 + 2 + 18 + 8 + 4 + 2 + 3 + 2 + 22;
/// The number of files of one worker's runtime.
const WORKER_RESERVE: usize = 8;
/// The number of connections to one issuer, in addition to those for introspection.
const ISSUER_RESERVE: usize = 4;

/// Raises the process's limit of open files for the plan, at most to the hard limit. If that is not
/// enough, lowers the plan's connection limits in proportion. Returns `None` if nothing is lowered.
pub(crate) fn fit(plan: &mut Plan) -> Option<Shortage> {
    let upstreams = connection_limits(plan);
    let wanted = Files::wanted(plan, &upstreams);
    let limit = raise(wanted.total())?;
    let fitted = wanted.fitted(limit.files)?;
    plan.limits.max_connections = fitted.clients;
    set(&upstreams, &fitted);
    Some(Shortage {
        limit,
        needed: wanted.total(),
        wanted,
        fitted,
    })
}

/// As [`fit`] for the plan of a reload: the running server accepts `clients` connections, which a
/// reload does not change. Only those of upstreams are lowered.
pub(crate) fn fit_reloaded(plan: &mut Plan, clients: usize) -> Option<Shortage> {
    let configured = std::mem::replace(&mut plan.limits.max_connections, clients);
    let upstreams = connection_limits(plan);
    let wanted = Files::wanted(plan, &upstreams);
    let limit = raise(wanted.total())?;
    let fitted = wanted.with_fitted_upstreams(limit.files)?;
    set(&upstreams, &fitted);
    Some(Shortage {
        limit,
        needed: wanted.after_restart(configured),
        wanted,
        fitted,
    })
}

/// Returns the connection limits of the plan's HTTP upstreams.
fn connection_limits(plan: &Plan) -> Vec<ConnectionLimit> {
    let http = plan
        .resources
        .iter()
        .filter_map(|resource| match &resource.upstream {
            UpstreamPlan::Http(settings) => Some(settings.connection_limit.clone()),
            UpstreamPlan::Demo => None,
        });
    http.collect()
}

fn set(upstreams: &[ConnectionLimit], fitted: &Files) {
    for (limit, max) in upstreams.iter().zip(&fitted.upstreams) {
        limit.set_max(*max);
    }
}

/// A limit of open files that is too low for the configured plan.
pub(crate) struct Shortage {
    limit: FileLimit,
    /// The number of files after a restart, which accepts the configured number of clients.
    needed: usize,
    wanted: Files,
    fitted: Files,
}

impl Shortage {
    /// Logs the lowered limits and the fix. A small reduction is no warning.
    pub(crate) fn log(&self) {
        let (limit, needed) = (self.limit.files, self.needed);
        if self.is_small() {
            tracing::info!(files.limit = limit, files.needed = needed, "{self}");
        } else {
            tracing::warn!(files.limit = limit, files.needed = needed, "{self}");
        }
    }

    /// Whether at least 95 % of each number of connections remain.
    fn is_small(&self) -> bool {
        let remain = |fitted: usize, wanted: usize| fitted >= wanted - wanted / 20;
        let mut upstreams = self.fitted.upstreams.iter().zip(&self.wanted.upstreams);
        remain(self.fitted.clients, self.wanted.clients)
            && upstreams.all(|(fitted, wanted)| remain(*fitted, *wanted))
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            limit,
            needed,
            wanted,
            fitted,
        } = self;
        write!(
            f,
            "the limit of open files is {}, and {needed} are needed: ",
            limit.files
        )?;
        let (before, after) = (&wanted.upstreams, &fitted.upstreams);
        if fitted.clients < wanted.clients {
            write!(
                f,
                "limits.max_connections is lowered from {} to {}, and ",
                wanted.clients, fitted.clients
            )?;
            write!(
                f,
                "the connections of upstreams from {before:?} to {after:?}; "
            )?;
        } else {
            write!(
                f,
                "the connections of upstreams are lowered from {before:?} to {after:?}; "
            )?;
        }
        match &limit.refusal {
            None => write!(
                f,
                "raise the hard limit to {needed} (ulimit -Hn {needed}, or LimitNOFILE={needed} in the systemd unit)"
            )?,
            Some(error) => write!(
                f,
                "the system does not let this process raise its limit ({error}): start it with a limit of {needed} (ulimit \
                 -n {needed}, or LimitNOFILE={needed} in the systemd unit)"
            )?,
        }
        write!(
            f,
            ", or lower limits.max_connections and limits.upstream_connections"
        )
    }
}

/// The number of files by purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Files {
    /// Files other than connections, and connections to issuers. They are not lowered.
    reserve: usize,
    /// Connections of clients.
    clients: usize,
    /// Connections to each upstream.
    upstreams: Vec<usize>,
}

impl Files {
    fn wanted(plan: &Plan, upstreams: &[ConnectionLimit]) -> Self {
        let introspection = |issuer: &portcullis_config::plan::IssuerPlan| {
            issuer
                .settings
                .validation
                .introspection()
                .map_or(0, |introspection| introspection.max_in_flight)
        };
        let workers = plan.workers.saturating_mul(WORKER_RESERVE);
        let issuers = plan
            .issuers
            .iter()
            .map(|issuer| ISSUER_RESERVE.saturating_add(introspection(issuer)));
        Self {
            reserve: issuers.fold(BASE_RESERVE.saturating_add(workers), usize::saturating_add),
            clients: plan.limits.max_connections,
            upstreams: upstreams.iter().map(ConnectionLimit::max).collect(),
        }
    }

    fn total(&self) -> usize {
        self.upstreams.iter().copied().fold(
            self.reserve.saturating_add(self.clients),
            usize::saturating_add,
        )
    }

    /// Returns the total with the configured number of clients, if it is higher.
    fn after_restart(&self, configured: usize) -> usize {
        Self {
            clients: configured.max(self.clients),
            ..self.clone()
        }
        .total()
    }

    /// Lowers all connections. Returns `None` if they already fit.
    fn fitted(&self, limit: usize) -> Option<Self> {
        if self.total() <= limit {
            return None;
        }
        let wanted: Vec<usize> = [self.clients]
            .into_iter()
            .chain(self.upstreams.iter().copied())
            .collect();
        let mut lowered = lowered(&wanted, limit.saturating_sub(self.reserve)).into_iter();
        let clients = lowered.next().unwrap_or(1);
        Some(Self {
            reserve: self.reserve,
            clients,
            upstreams: lowered.collect(),
        })
    }

    /// Lowers only the connections to upstreams. Returns `None` if all connections already fit, or
    /// there are no upstreams.
    fn with_fitted_upstreams(&self, limit: usize) -> Option<Self> {
        if self.total() <= limit || self.upstreams.is_empty() {
            return None;
        }
        let fixed = self.reserve.saturating_add(self.clients);
        Some(Self {
            upstreams: lowered(&self.upstreams, limit.saturating_sub(fixed)),
            ..self.clone()
        })
    }
}

/// Lowers numbers of connections to at most `available` in total, in proportion. Each result is at
/// least 1, so their total can exceed `available`. Each wanted number is at least 1: the
/// configuration requires it.
fn lowered(wanted: &[usize], available: usize) -> Vec<usize> {
    let above_one = |max: usize| max.saturating_sub(1) as u128;
    let rest = available.saturating_sub(wanted.len()) as u128;
    // At least 1, because it divides.
    let total = wanted
        .iter()
        .map(|max| above_one(*max))
        .sum::<u128>()
        .max(1);
    let share = |max: &usize| {
        usize::try_from(above_one(*max) * rest / total).map_or(1, |share| share.saturating_add(1))
    };
    wanted.iter().map(share).collect()
}

/// The limit of open files.
struct FileLimit {
    files: usize,
    /// Why the soft limit was not raised although the hard limit is higher.
    refusal: Option<std::io::Error>,
}

/// Raises the soft limit to `needed` if it is lower, at most to the hard limit. Returns the
/// resulting limit, or `None` if there is none.
///
/// On macOS the hard limit can be unlimited and a soft limit above `kern.maxfilesperproc` is
/// refused. The soft limit then stays as it is; a lower one is not tried.
#[cfg(unix)]
fn raise(needed: usize) -> Option<FileLimit> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let soft = current?;
    let needed = needed as u64;
    let target = maximum.map_or(needed, |hard| hard.min(needed));
    if soft >= target {
        return FileLimit::new(soft, None);
    }
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(target),
            maximum,
        },
    ) {
        Ok(()) => FileLimit::new(target, None),
        Err(error) => FileLimit::new(soft, Some(error.into())),
    }
}

#[cfg(not(unix))]
fn raise(_needed: usize) -> Option<FileLimit> {
    None
}

impl FileLimit {
    /// Returns `None` for a limit that no process reaches.
    #[cfg(unix)]
    fn new(files: u64, refusal: Option<std::io::Error>) -> Option<Self> {
        Some(Self {
            files: files.try_into().ok()?,
            refusal,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use portcullis_config::from_text;

    fn files(clients: usize, upstreams: &[usize]) -> Files {
        Files {
            reserve: 80,
            clients,
            upstreams: upstreams.into(),
        }
    }

    fn plan(lines: &str) -> Plan {
        let text = format!(
            "base_url = \"http://127.0.0.1:3000\"\nworkers = 2\n[limits]\nmax_connections = 1000\nupstream_connections = 500\n{lines}"
        );
        Plan::new(&from_text(&text).unwrap()).unwrap()
    }

    fn resource(name: &str, upstream: &str) -> String {
        format!("[[resource]]\nauth = \"none\"\nendpoint = \"/{name}\"\nupstream = {upstream}\n")
    }

    const HTTP: &str = "{ http = \"http://127.0.0.1:8000/mcp\" }";

    /// L9: connections are lowered in proportion, and only if they do not fit.
    #[test]
    fn connections_are_lowered_in_proportion() {
        assert_eq!(files(10_000, &[10_000]).fitted(20_080), None);
        assert_eq!(files(10_000, &[10_000]).fitted(256), Some(files(88, &[88])));
        assert_eq!(
            files(10_000, &[5_000, 5_000]).fitted(1_080),
            Some(files(499, &[250, 250]))
        );
        assert_eq!(files(100, &[]).fitted(130), Some(files(50, &[])));
        assert_eq!(
            files(10_000, &[10_000]).fitted(20),
            Some(files(1, &[1])),
            "never 0"
        );
        assert_eq!(
            files(1, &[1]).fitted(20),
            Some(files(1, &[1])),
            "nothing to divide"
        );
    }

    /// L9: many upstreams with few connections take no more than there are.
    #[test]
    fn the_minimum_of_each_upstream_is_set_aside() {
        let wanted = Files {
            reserve: 200,
            clients: 10_000,
            upstreams: vec![1; 100],
        };
        let fitted = wanted.fitted(1_024).unwrap();
        assert_eq!((fitted.clients, fitted.total()), (724, 1_024));
    }

    /// L9: the warning of a reload names the files for all configured clients, also if the start
    /// has lowered their number.
    #[test]
    fn a_reload_counts_the_configured_clients() {
        assert_eq!(files(88, &[10_000]).after_restart(10_000), 20_080);
        assert_eq!(
            files(88, &[10_000]).after_restart(10),
            10_168,
            "more clients are connected"
        );
        let mut plan = plan(&resource("a", HTTP));
        plan.limits.max_connections = usize::MAX / 2;
        connection_limits(&plan)
            .iter()
            .for_each(|limit| limit.set_max(usize::MAX / 4));
        let shortage = fit_reloaded(&mut plan, 7);
        assert_eq!(plan.limits.max_connections, 7);
        assert!(
            shortage.is_some() || cfg!(not(target_os = "linux")),
            "Linux always has a limit"
        );
        let Some(shortage) = shortage else { return };
        let needed = usize::MAX / 2 + usize::MAX / 4 + 64 + 2 * 8;
        assert!(
            shortage
                .to_string()
                .contains(&format!("and {needed} are needed")),
            "{shortage}"
        );
    }

    /// L9: a reload does not change the connections of clients.
    #[test]
    fn only_upstreams_are_lowered_at_a_reload() {
        assert_eq!(files(86, &[10, 10]).with_fitted_upstreams(186), None);
        assert_eq!(
            files(86, &[10_000, 10_000]).with_fitted_upstreams(256),
            Some(files(86, &[45, 45]))
        );
        assert_eq!(
            files(86, &[10_000]).with_fitted_upstreams(80),
            Some(files(86, &[1])),
            "never 0"
        );
        assert_eq!(
            files(86, &[]).with_fitted_upstreams(80),
            None,
            "there is nothing to lower"
        );
    }

    #[test]
    fn the_plans_files_are_counted() {
        let plan = plan(
            &[
                resource("a", HTTP),
                resource("b", "\"demo\""),
                resource("c", HTTP),
            ]
            .concat(),
        );
        let limits = connection_limits(&plan);
        let wanted = Files::wanted(&plan, &limits);
        assert_eq!(
            wanted,
            Files {
                reserve: 64 + 2 * 8,
                clients: 1_000,
                upstreams: vec![500, 500]
            }
        );
        set(&limits, &files(1, &[7, 8]));
        let max = connection_limits(&plan)
            .iter()
            .map(ConnectionLimit::max)
            .collect::<Vec<_>>();
        assert_eq!(max, [7, 8], "the plan has the lowered limits");
    }

    /// The usual hard limit of 20,000 lacks few of the files of the default limits.
    #[test]
    fn a_small_reduction_is_no_warning() {
        let is_small = |clients, upstreams: &[usize]| {
            let shortage = Shortage {
                limit: FileLimit {
                    files: 20_000,
                    refusal: None,
                },
                needed: 20_084,
                wanted: files(10_000, &[10_000]),
                fitted: files(clients, upstreams),
            };
            shortage.is_small()
        };
        assert!(is_small(9_958, &[9_958]));
        assert!(is_small(9_500, &[9_500]));
        assert!(!is_small(9_499, &[10_000]));
        assert!(!is_small(10_000, &[9_499]));
        assert!(!is_small(1, &[1]));
    }

    #[test]
    fn the_fix_depends_on_the_cause() {
        let shortage = |refusal: Option<std::io::Error>, clients| Shortage {
            limit: FileLimit {
                files: 256,
                refusal,
            },
            needed: 1_580,
            wanted: files(1_000, &[500]),
            fitted: files(clients, &[50]),
        };
        let low = shortage(None, 100).to_string();
        assert!(
            low.contains(
                "lowered from 1000 to 100, and the connections of upstreams from [500] to [50]"
            ),
            "{low}"
        );
        assert!(
            low.contains("raise the hard limit to 1580 (ulimit -Hn 1580, or LimitNOFILE=1580"),
            "{low}"
        );
        let refused = shortage(Some(std::io::ErrorKind::PermissionDenied.into()), 100).to_string();
        assert!(
            refused.contains("(permission denied): start it with a limit of 1580"),
            "{refused}"
        );
        assert!(!refused.contains("hard limit"), "{refused}");
        let reloaded = shortage(None, 1_000).to_string();
        assert!(
            !reloaded.contains("max_connections is lowered"),
            "{reloaded}"
        );
        assert!(
            reloaded
                .contains("needed: the connections of upstreams are lowered from [500] to [50]"),
            "{reloaded}"
        );
    }

    proptest! {
        /// L9: the lowered connections fit, unless the limit is too low for one connection each.
        #[test]
        fn fitted_connections_fit(
            clients in 1_usize..=1_000_000,
            upstreams in prop::collection::vec(1_usize..=1_000_000, 0..8),
            limit in 0_usize..3_000_000,
        ) {
            let wanted = files(clients, &upstreams);
            let fitted = wanted.fitted(limit).unwrap_or_else(|| wanted.clone());
            prop_assert!(fitted.total() <= limit.max(wanted.reserve + 1 + upstreams.len()));
            prop_assert!(fitted.clients >= 1 && fitted.upstreams.iter().all(|max| *max >= 1));
            prop_assert!(fitted.clients <= clients);
            let reloaded = wanted.with_fitted_upstreams(limit).unwrap_or_else(|| wanted.clone());
            prop_assert_eq!(reloaded.clients, clients);
            prop_assert!(upstreams.is_empty() || reloaded.total() <= limit.max(wanted.reserve + clients + upstreams.len()));
        }
    }
}
