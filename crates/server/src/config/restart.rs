//! The keys that only a restart changes.

use super::{Change, Config, changes};

/// Sets the keys that only a restart changes to the running values. Returns those that differ; the running value is the old
/// one.
pub(crate) fn keep_until_restart(running: &Config, new: &mut Config) -> Vec<Change> {
    let wanted = new.clone();
    new.listen = running.listen;
    new.workers = running.workers;
    new.state_dir.clone_from(&running.state_dir);
    new.audit.clone_from(&running.audit);
    new.traces.clone_from(&running.traces);
    new.shared.clone_from(&running.shared);
    // The listener speaks TLS or does not, and keys of sessions are configured or generated. The files can change.
    if new.tls.is_some() != running.tls.is_some() {
        new.tls.clone_from(&running.tls);
    }
    if new.session.keys.is_some() != running.session.keys.is_some() {
        new.session.keys.clone_from(&running.session.keys);
    }
    new.session.idle_timeout = running.session.idle_timeout;
    new.session.lifetime = running.session.lifetime;
    new.session.max_total = running.session.max_total;
    new.session.max_per_owner = running.session.max_per_owner;
    // The limits of connections and heads.
    new.limits.max_connections = running.limits.max_connections;
    new.limits.max_headers = running.limits.max_headers;
    new.limits.max_token = running.limits.max_token;
    new.limits.max_streams = running.limits.max_streams;
    new.limits.max_resets = running.limits.max_resets;
    new.limits.header_timeout = running.limits.header_timeout;
    new.limits.body_pause = running.limits.body_pause;
    new.limits.body_timeout = running.limits.body_timeout;
    changes(new, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

    const BASE: &str = "base_url = \"http://127.0.0.1:3000\"\n";
    const RESOURCE: &str = "\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"";

    /// J10: what needs a restart is named and stays as it is. Everything else changes.
    #[test]
    fn keys_that_need_a_restart_stay() {
        let running = from_text(&format!("{BASE}{RESOURCE}")).unwrap();
        for (top, tables, kept, applied) in [
            ("listen = \"127.0.0.1:1\"", "", "listen", ""),
            ("workers = 3", "", "workers", ""),
            ("state_dir = \"off\"", "", "state_dir", ""),
            ("", "[shared]\nredis = \"redis://127.0.0.1\"", "shared.redis shared.strict", ""),
            ("", "[tls]\ncertificates = \"/c\"\nkey = \"/k\"", "tls.certificates tls.key", ""),
            (
                "",
                "[session]\nidle_timeout = \"1h\"\nended_status = 404",
                "session.idle_timeout",
                "session.ended_status",
            ),
            (
                "",
                "[traces]\nendpoint = \"http://127.0.0.1:1\"\nsample = 1",
                "traces.client traces.endpoint traces.sample traces.service_name",
                "",
            ),
            ("", "[session]\nkeys = [{ env = \"K\" }]", "session.keys[0].env", ""),
            ("", "[limits]\nmax_headers = 99\nmax_body = 9999", "limits.max_headers", "limits.max_body"),
            ("shutdown_timeout = \"1s\"\nreload = \"watch\"", "", "", "reload shutdown_timeout"),
        ] {
            let mut new = from_text(&format!("{top}\n{BASE}{tables}{RESOURCE}")).unwrap();
            let keys =
                |changes: Vec<Change>| changes.into_iter().map(|change| change.key).collect::<Vec<_>>().join(" ");
            assert_eq!(keys(keep_until_restart(&running, &mut new)), kept);
            assert_eq!(keys(changes(&running, &new)), applied);
        }
    }
}
