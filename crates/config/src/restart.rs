use url::Url;

use super::{
    Change, Config, changes,
    file::{Broker, Limits, Session},
    plan::state_dir_of,
};

/// Returns the changes that a reload cannot apply: they need a restart of the server.
pub fn changes_that_need_restart(running: &Config, new: &Config) -> Vec<Change> {
    let mut kept = new.clone();
    keep(running, &mut kept);
    changes(&kept, new)
}

/// Sets each setting that takes effect only at a start to its running value.
fn keep(running: &Config, new: &mut Config) {
    // No pattern in this file has `..`: a new setting does not compile until it is in one of the
    // two groups.
    let Config {
        workers,
        state_dir,
        session,
        shared,
        broker,
        limits,
        audit,
        admin,
        traces,
        base_url,
        // A reload applies these.
        listen: _,
        tls: _,
        shutdown_delay: _,
        shutdown_timeout: _,
        reload: _,
        dangerous_allow_unauthenticated_network: _,
        trusted_proxies: _,
        trusted_proxy_header: _,
        issuer: _,
        resource: _,
    } = running;
    new.workers = *workers;
    new.state_dir.clone_from(state_dir);
    new.shared.clone_from(shared);
    new.audit.clone_from(audit);
    new.traces.clone_from(traces);
    // Metrics are counted from the start, and only if there is a listener that serves them.
    keep_presence(admin, &mut new.admin);
    if base_url_names_state(running, new) {
        new.base_url.clone_from(base_url);
    }
    keep_broker(broker, &mut new.broker);
    keep_session(session, &mut new.session);
    keep_limits(limits, &mut new.limits);
}

/// Returns whether what the process has opened would have another name with the new `base_url`: the
/// keys in Redis, or the default state directory. Everything else of the two configurations is the
/// same for them.
fn base_url_names_state(running: &Config, new: &Config) -> bool {
    let url = |config: &Config| Url::parse(&config.base_url).ok();
    let is_other_url = url(running) != url(new);
    is_other_url
        && (running.shared.is_some() || state_dir_of(running).ok() != state_dir_of(new).ok())
}

/// Keeps whether there is a broker, and whether its keys are configured or generated. A reload can
/// change everything else of it.
fn keep_broker(running: &Option<Broker>, new: &mut Option<Broker>) {
    keep_presence(running, new);
    if let (Some(running), Some(new)) = (running, new) {
        keep_presence(&running.keys, &mut new.keys);
    }
}

fn keep_session(running: &Session, new: &mut Session) {
    let Session {
        idle_timeout,
        lifetime,
        max_total,
        max_per_owner,
        max_per_subject,
        keys,
        without_state,
        ended_status: _,
    } = running;
    new.idle_timeout = *idle_timeout;
    new.lifetime = *lifetime;
    new.max_total = *max_total;
    new.max_per_owner = *max_per_owner;
    new.max_per_subject = *max_per_subject;
    new.without_state = *without_state;
    keep_presence(keys, &mut new.keys);
}

/// Keeps the limits of connections and of request heads.
fn keep_limits(running: &Limits, new: &mut Limits) {
    let Limits {
        max_token,
        max_connections,
        max_headers,
        header_timeout,
        body_pause,
        body_timeout,
        max_streams,
        max_resets,
        // A reload applies these.
        max_body: _,
        body_budget: _,
        max_depth: _,
        upstream_connections: _,
        cached_tokens: _,
        per_address: _,
        rejected_per_address: _,
        per_principal: _,
        rate_entries: _,
        in_flight_per_principal: _,
    } = running;
    new.max_token = *max_token;
    new.max_connections = *max_connections;
    new.max_headers = *max_headers;
    new.header_timeout = *header_timeout;
    new.body_pause = *body_pause;
    new.body_timeout = *body_timeout;
    new.max_streams = *max_streams;
    new.max_resets = *max_resets;
}

/// Keeps whether there is a value. A reload can change the value: session keys are replaced in
/// operation, but they are configured or generated.
fn keep_presence<T: Clone>(running: &Option<T>, new: &mut Option<T>) {
    if running.is_some() != new.is_some() {
        new.clone_from(running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_text;

    /// Returns the configuration with these lines at its top.
    fn config(lines: &str) -> Config {
        let rest = "base_url = 'http://127.0.0.1:3000'\n[[resource]]\nendpoint = '/mcp'\nupstream = 'demo'";
        from_text(&format!("{lines}\n{rest}")).unwrap()
    }

    /// Changes the settings in `running` to those in `new`. Returns the keys that need a restart,
    /// and all that change.
    fn reload(running: &str, new: &str) -> (String, String) {
        let running = config(running);
        let new = config(new);
        let keys = |changes: Vec<Change>| {
            changes
                .into_iter()
                .map(|change| change.key)
                .collect::<Vec<_>>()
                .join(" ")
        };
        (
            keys(changes_that_need_restart(&running, &new)),
            keys(changes(&running, &new)),
        )
    }

    /// The keys that a broker has without its table.
    const OF_BROKER: &str = "broker.access_token_lifetime broker.clients.documents broker.clients.max_registered \
                             broker.clients.registration broker.max_unchecked broker.paste_callback broker.recheck \
                             broker.refresh_reuse broker.remember_consent";

    /// J10: what needs a restart is named.
    #[test]
    fn settings_of_the_process_need_a_restart() {
        for (setting, named) in [
            ("workers = 3", "workers"),
            ("state_dir = 'off'", "state_dir"),
            (
                "shared.redis = 'redis://127.0.0.1'",
                "shared.assume_durable shared.redis shared.strict",
            ),
            (
                "audit.target = 'stdout'",
                "audit.queue audit.target audit.usage_interval audit.usage_rows audit.without_chain",
            ),
            (
                "admin.listen = '127.0.0.1:1'",
                "admin.listen admin.token.env",
            ),
            (
                "traces.endpoint = 'http://127.0.0.1:1'",
                "traces.client traces.endpoint traces.sample traces.service_name",
            ),
            ("session.idle_timeout = '1h'", "session.idle_timeout"),
            ("session.lifetime = '1h'", "session.lifetime"),
            ("session.max_total = 9", "session.max_total"),
            ("session.max_per_owner = 9", "session.max_per_owner"),
            ("session.max_per_subject = 900", "session.max_per_subject"),
            (
                "session.without_state = 'reject_ends'",
                "session.without_state",
            ),
            ("session.keys = [{ env = 'K' }]", "session.keys[0].env"),
            ("broker.recheck = '2m'", OF_BROKER),
            ("limits.max_token = 9", "limits.max_token"),
            ("limits.max_connections = 9", "limits.max_connections"),
            ("limits.max_headers = 9", "limits.max_headers"),
            ("limits.header_timeout = '9s'", "limits.header_timeout"),
            ("limits.body_pause = '9s'", "limits.body_pause"),
            ("limits.body_timeout = '9s'", "limits.body_timeout"),
            ("limits.max_streams = 9", "limits.max_streams"),
            ("limits.max_resets = 9", "limits.max_resets"),
        ] {
            assert_eq!(reload("", setting).0, named, "{setting}");
            assert_eq!(reload(setting, "").0, named, "without {setting}");
        }
    }

    /// J10: what the process has opened can be named after `base_url`, which needs a restart then.
    #[test]
    #[expect(
        clippy::result_large_err,
        reason = "the error type is that of figment's jail"
    )]
    fn the_url_needs_a_restart_if_state_is_named_after_it() {
        let config = |url: &str, lines: &str| {
            let mut config = config(lines);
            config.base_url = url.to_owned();
            config
        };
        figment::Jail::expect_with(|jail| {
            jail.clear_env();
            jail.set_env("HOME", "/home/a");
            for (lines, systemd, new, needs_restart) in [
                ("", "", "https://b.example", true),
                ("", "", "https://a.example/", false),
                ("", "/var/lib/portcullis", "https://b.example", false),
                ("state_dir = 'off'", "", "https://b.example", false),
                ("state_dir = '/state'", "", "https://b.example", false),
                (
                    "state_dir = '/state'\nshared.redis = 'redis://127.0.0.1'",
                    "",
                    "https://b.example",
                    true,
                ),
            ] {
                jail.set_env("STATE_DIRECTORY", systemd);
                let running = config("https://a.example", lines);
                let changes = changes_that_need_restart(&running, &config(new, lines));
                let keys: Vec<_> = changes.iter().map(|change| change.key.as_str()).collect();
                let expected: &[&str] = if needs_restart { &["base_url"] } else { &[] };
                assert_eq!(keys, expected, "{lines} {systemd} {new}");
            }
            Ok(())
        });
    }

    /// J10: whether the broker's keys are configured or generated is decided at the start.
    #[test]
    fn configured_keys_of_the_broker_need_a_restart() {
        let generated = "broker.recheck = '1m'";
        let configured = "broker = { recheck = '1m', keys = { env = 'K' } }";
        assert_eq!(reload(generated, configured).0, "broker.keys.env");
        assert_eq!(reload(configured, generated).0, "broker.keys.env");
    }

    /// J10: a reload applies everything else.
    #[test]
    fn other_settings_change() {
        for (running, new, changed) in [
            ("", "listen = '127.0.0.1:1'", "listen"),
            (
                "",
                "tls = { certificates = '/c', key = '/k' }",
                "tls.certificates tls.key",
            ),
            (
                "admin.listen = '127.0.0.1:1'",
                "admin = { listen = '127.0.0.1:2', token = { env = 'T' } }",
                "admin.listen admin.token.env",
            ),
            ("", "shutdown_delay = '1s'", "shutdown_delay"),
            ("", "shutdown_timeout = '1s'", "shutdown_timeout"),
            ("", "reload = 'watch'", "reload"),
            (
                "",
                "dangerous_allow_unauthenticated_network = true",
                "dangerous_allow_unauthenticated_network",
            ),
            ("", "trusted_proxies = ['10.0.0.0/8']", "trusted_proxies"),
            (
                "",
                "trusted_proxy_header = 'Forwarded'",
                "trusted_proxy_header",
            ),
            (
                "issuer = [{ issuer = 'https://a.example' }]",
                "issuer = [{ issuer = 'https://a.example', leeway = '1s' }]",
                "issuer[\"https://a.example\"].leeway",
            ),
            ("", "session.ended_status = 404", "session.ended_status"),
            ("", "limits.max_body = 9", "limits.max_body"),
            ("", "limits.body_budget = 9", "limits.body_budget"),
            ("", "limits.max_depth = 9", "limits.max_depth"),
            (
                "",
                "limits.upstream_connections = 9",
                "limits.upstream_connections",
            ),
            ("", "limits.cached_tokens = 9", "limits.cached_tokens"),
            (
                "",
                "limits.per_address = { requests = 1, per = '1s' }",
                "limits.per_address.per limits.per_address.requests",
            ),
            (
                "",
                "limits.rejected_per_address = { requests = 1, per = '1s' }",
                "limits.rejected_per_address.per limits.rejected_per_address.requests",
            ),
            (
                "",
                "limits.per_principal = { requests = 1, per = '1s' }",
                "limits.per_principal.per limits.per_principal.requests",
            ),
            ("", "limits.rate_entries = 9", "limits.rate_entries"),
            (
                "",
                "limits.in_flight_per_principal = 9",
                "limits.in_flight_per_principal",
            ),
            (
                "broker = { recheck = '1m', keys = { env = 'A' } }",
                "broker = { recheck = '2m', keys = { env = 'B' } }",
                "broker.keys.env broker.recheck",
            ),
            // Both configurations have TLS, or configured keys.
            (
                "tls = { certificates = '/a', key = '/k' }",
                "tls = { certificates = '/b', key = '/k' }",
                "tls.certificates",
            ),
            (
                "session.keys = [{ env = 'A' }]",
                "session.keys = [{ env = 'B' }]",
                "session.keys[0].env",
            ),
        ] {
            assert_eq!(
                reload(running, new),
                (String::new(), changed.to_owned()),
                "{new}"
            );
        }
    }
}
