//! All metrics: their names, types and labels.

/// A metric.
#[derive(Debug)]
pub struct Family {
    /// The name, with the unit as its ending.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub metric_type: &'static str,
    /// The labels, separated by commas.
    pub labels: &'static str,
    /// What is measured.
    pub help: &'static str,
}

macro_rules! families {
    ($($constant:ident $type:literal $name:literal [$labels:literal] $help:literal;)*) => {
        $(#[doc = concat!("`", $name, "`.")]
        pub const $constant: Family = Family { name: $name, metric_type: $type, labels: $labels, help: $help };)*
        /// All metrics, in the order in which they are written.
        pub const FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    REQUESTS "counter" "portcullis_requests_total" ["resource, decision, code"]
        "Requests by resource, decision (allow, deny, fail) and reason code (none if allowed).";
    REQUEST_DURATION "histogram" "portcullis_request_duration_seconds" ["resource"]
        "Time from the arrival of a request to the head of its response.";
    UPSTREAM_DURATION "histogram" "portcullis_upstream_duration_seconds" ["resource"]
        "Time from a request to the upstream to the head of its response.";
    VERIFICATION_DURATION "histogram" "portcullis_verification_duration_seconds" ["resource"]
        "Time of verifications that the cache could not answer, with waiting for keys and introspection.";
    TOKEN_CACHE_HITS "counter" "portcullis_token_cache_hits_total" ["resource"]
        "Tokens that were found in the cache.";
    CACHED_TOKENS "gauge" "portcullis_cached_tokens" ["resource"]
        "Verified tokens in the cache.";
    UPSTREAM_CONNECTIONS "gauge" "portcullis_upstream_connections" ["resource"]
        "Open connections to the upstream, idle ones included.";
    UPSTREAM_CONNECTIONS_MAX "gauge" "portcullis_upstream_connections_max" ["resource"]
        "Maximum number of open connections to the upstream.";
    ISSUER_USABLE "gauge" "portcullis_issuer_usable" ["issuer"]
        "Whether tokens of the issuer can be verified.";
    ISSUER_KEYS "gauge" "portcullis_issuer_keys" ["issuer"]
        "Usable keys of the issuer.";
    ISSUER_KEY_AGE "gauge" "portcullis_issuer_key_age_seconds" ["issuer"]
        "Time since the keys of the issuer were fetched.";
    ISSUER_FETCHES "counter" "portcullis_issuer_fetches_total" ["issuer"]
        "Fetches of the issuer's keys and metadata.";
    ISSUER_FETCH_FAILURES "counter" "portcullis_issuer_fetch_failures_total" ["issuer"]
        "Fetches of the issuer's keys and metadata that failed.";
    INTROSPECTIONS "counter" "portcullis_introspections_total" ["issuer"]
        "Calls of the introspection endpoint.";
    INTROSPECTION_FAILURES "counter" "portcullis_introspection_failures_total" ["issuer"]
        "Calls of the introspection endpoint that failed.";
    SESSIONS "gauge" "portcullis_sessions" [""]
        "Sessions in the table.";
    SESSIONS_MAX "gauge" "portcullis_sessions_max" [""]
        "Maximum number of sessions in the table.";
    SESSIONS_OPENED "counter" "portcullis_sessions_opened_total" [""]
        "Sessions that were opened.";
    SESSIONS_ENDED "counter" "portcullis_sessions_ended_total" ["reason"]
        "Sessions that ended, by reason.";
    STREAMS "gauge" "portcullis_streams" [""]
        "Open event streams.";
    STREAMS_ENDED "counter" "portcullis_streams_ended_total" ["code"]
        "Event streams that the server ended, by reason code.";
    BROKER_CLIENTS_REGISTERED "counter" "portcullis_broker_clients_registered_total" [""]
        "Registrations at the broker. A client that registers again counts again.";
    BROKER_CONSENTS "counter" "portcullis_broker_consents_total" ["decision"]
        "Decisions of users about clients (approved, denied).";
    BROKER_SIGN_INS "counter" "portcullis_broker_sign_ins_total" ["provider, result"]
        "Sign-ins at a provider by result (succeeded, or the reason code of the failure, then or at a refresh).";
    BROKER_TOKENS_ISSUED "counter" "portcullis_broker_tokens_issued_total" ["kind"]
        "Access tokens that the broker issued, by what they were issued for (code, refresh).";
    BROKER_GRANTS_ENDED "counter" "portcullis_broker_grants_ended_total" ["reason"]
        "Grants of the broker that ended before they expired, by reason code.";
    BROKER_REJECTED "counter" "portcullis_broker_rejected_total" ["endpoint, error"]
        "Requests that the broker rejected, by endpoint and OAuth error code (untrusted, cross_origin, no_cookie for some pages).";
    BODY_BUDGET "gauge" "portcullis_body_budget_bytes" [""]
        "Maximum size of all request bodies in memory.";
    BODY_BUDGET_USED "gauge" "portcullis_body_budget_used_bytes" [""]
        "Size of all request bodies in memory.";
    ACCESS_DROPPED "counter" "portcullis_access_lines_dropped_total" [""]
        "Access lines that were dropped because standard error is too slow.";
    AUDIT_WRITTEN "counter" "portcullis_audit_records_written_total" [""]
        "Audit records that were written.";
    AUDIT_LOST "counter" "portcullis_audit_records_lost_total" [""]
        "Audit records that were lost because the target is too slow.";
    READY "gauge" "portcullis_ready" [""]
        "Whether /readyz answers 200.";
    CERTIFICATE_EXPIRY "gauge" "portcullis_certificate_expiry_timestamp_seconds" ["table"]
        "When the certificate of [tls] or [admin.tls] expires, in seconds since 1970.";
    RELOADS "counter" "portcullis_reloads_total" ["result"]
        "Reloads of the configuration by result (accepted, rejected).";
    LAST_RELOAD_SUCCESSFUL "gauge" "portcullis_last_reload_successful" [""]
        "Whether the last reload was accepted; 1 before the first one.";
    LAST_RELOAD_TIME "gauge" "portcullis_last_reload_success_timestamp_seconds" [""]
        "When the running configuration was read, in seconds since 1970.";
    TASKS "gauge" "portcullis_tasks" [""]
        "Tasks that have not ended, of all workers and of the control runtime.";
    BUILD_INFO "gauge" "portcullis_build_info" ["version"]
        "1, with the version of the program.";
    PROCESS_START "gauge" "process_start_time_seconds" [""]
        "Start time of the process, in seconds since 1970.";
    PROCESS_CPU "counter" "process_cpu_seconds_total" [""]
        "CPU time of the process.";
    PROCESS_MEMORY "gauge" "process_resident_memory_bytes" [""]
        "Resident memory of the process.";
    PROCESS_FDS "gauge" "process_open_fds" [""]
        "Open file descriptors of the process.";
    PROCESS_MAX_FDS "gauge" "process_max_fds" [""]
        "Maximum number of open file descriptors of the process.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const PAGE: &str = include_str!("../../../../docs/use/metrics.md");
    const DASHBOARD: &str = include_str!("../../../../deploy/grafana/portcullis.json");
    const ALERTS: &str = include_str!("../../../../deploy/prometheus/portcullis.rules.yml");

    /// J7: names follow the conventions of Prometheus and are unique.
    #[test]
    fn names_follow_the_conventions() {
        let names: BTreeSet<_> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), FAMILIES.len());
        for family in FAMILIES {
            assert_eq!(
                family.metric_type == "counter",
                family.name.ends_with("_total"),
                "{}",
                family.name
            );
            assert!(
                family.metric_type != "histogram" || family.name.ends_with("_seconds"),
                "{}",
                family.name
            );
            assert!(family.help.ends_with('.'), "{}", family.help);
            assert!(!family.help.contains(['\n', '\\']), "{}", family.help);
        }
    }

    /// J7: the page has exactly these metrics, with their types, labels and meanings.
    #[test]
    fn the_page_has_all_metrics() {
        let rows: Vec<&str> = PAGE
            .lines()
            .filter(|line| line.starts_with("| `p"))
            .collect();
        let expected: Vec<String> = FAMILIES
            .iter()
            .map(|family| {
                let Family {
                    name,
                    metric_type,
                    labels,
                    help,
                } = family;
                let labels: Vec<String> = labels
                    .split(", ")
                    .filter(|label| !label.is_empty())
                    .map(|label| format!("`{label}`"))
                    .collect();
                format!(
                    "| `{name}` | {metric_type} | {} | {help} |",
                    if labels.is_empty() {
                        "none".to_owned()
                    } else {
                        labels.join(", ")
                    }
                )
            })
            .collect();
        assert_eq!(
            rows,
            expected,
            "the table should be:\n{}",
            expected.join("\n")
        );
    }

    /// J7: the dashboard and the alerts use only metrics that exist.
    #[test]
    fn queries_use_known_metrics() {
        let known = |name: &str| {
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .unwrap_or(name);
            FAMILIES.iter().any(|family| {
                family.name == name || family.name == base && family.metric_type == "histogram"
            })
        };
        for text in [DASHBOARD, ALERTS] {
            let names = text
                .split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
            let used: BTreeSet<_> = names
                .filter(|name| name.starts_with("portcullis_") || name.starts_with("process_"))
                .collect();
            assert!(used.len() > 5);
            assert_eq!(used.iter().find(|name| !known(name)), None);
        }
    }
}
