use super::*;
use crate::from_text;

/// The settings of one configuration.
#[derive(Clone, Copy, Debug)]
struct Setup {
    listen: &'static str,
    base_url: &'static str,
    upstream: &'static str,
    /// A further line at the top of the file.
    more: &'static str,
}

/// A server behind a proxy on the same machine, without a warning.
const BEHIND_PROXY: Setup = Setup {
    listen: "127.0.0.1:3000",
    base_url: "https://mcp.example.com",
    upstream: "http://127.0.0.1:8000/mcp",
    more: "",
};
/// A server on loopback, without a warning.
const LOCAL: Setup = Setup {
    base_url: "http://127.0.0.1:3000",
    ..BEHIND_PROXY
};
const TLS: &str = "tls = { certificates = \"c\", key = \"k\" }";
const PROXY: &str = "trusted_proxies = [\"10.0.0.0/8\"]";
const TLS_BEHIND_PROXY: &str =
    "trusted_proxies = [\"127.0.0.1\"]\ntls = { certificates = \"c\", key = \"k\" }";

fn warned(setup: Setup, is_container: bool) -> Vec<String> {
    let Setup {
        listen,
        base_url,
        upstream,
        more,
    } = setup;
    let config = from_text(&format!(
        "listen = \"{listen}\"\nbase_url = \"{base_url}\"\n{more}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = {{ http \
         = \"{upstream}\" }}"
    ));
    let mut warnings = Vec::new();
    warn(
        &config.unwrap(),
        &Url::parse(base_url).unwrap(),
        is_container,
        &mut warnings,
    );
    warnings
}

/// J9: addresses that fit cause no warning.
#[test]
fn sound_addresses_cause_no_warning() {
    for setup in [
        BEHIND_PROXY,
        LOCAL,
        Setup {
            base_url: "http://localhost:3000",
            ..LOCAL
        },
        Setup {
            listen: "[::1]:3000",
            base_url: "http://[::1]:3000",
            ..LOCAL
        },
        Setup {
            listen: "127.0.0.1:0",
            ..LOCAL
        },
        Setup {
            base_url: "http://127.0.0.1:8080",
            more: PROXY,
            ..LOCAL
        },
        Setup {
            listen: "0.0.0.0:3000",
            base_url: "http://localhost:8080",
            ..LOCAL
        },
        Setup {
            listen: "10.0.0.5:3000",
            upstream: "http://10.0.0.6:3000/mcp",
            ..BEHIND_PROXY
        },
        Setup {
            listen: "0.0.0.0:3000",
            upstream: "http://mcp:3000/mcp",
            more: PROXY,
            ..BEHIND_PROXY
        },
        Setup {
            listen: "0.0.0.0:443",
            upstream: "https://[fd00::1]/mcp",
            more: TLS,
            ..BEHIND_PROXY
        },
        Setup {
            listen: "0.0.0.0:8443",
            upstream: "https://tools.internal/mcp",
            more: TLS,
            ..BEHIND_PROXY
        },
        Setup {
            upstream: "http://tools.svc.cluster.local:8000/mcp",
            ..BEHIND_PROXY
        },
        Setup {
            upstream: "https://backend.example.net/mcp",
            ..BEHIND_PROXY
        },
        Setup {
            upstream: "http://172.17.0.1:8000/mcp",
            ..BEHIND_PROXY
        },
        Setup {
            listen: "10.0.0.5:3000",
            upstream: "http://0.0.0.0:3000/mcp",
            ..BEHIND_PROXY
        },
        Setup {
            listen: "127.0.0.2:3000",
            upstream: "http://localhost:3000/mcp",
            ..BEHIND_PROXY
        },
        Setup {
            listen: "127.0.0.1:3443",
            base_url: "https://localhost:3443",
            more: TLS,
            ..BEHIND_PROXY
        },
        Setup {
            base_url: "https://localhost:3443",
            ..BEHIND_PROXY
        },
        Setup {
            more: TLS_BEHIND_PROXY,
            ..BEHIND_PROXY
        },
        Setup {
            base_url: "https://localhost:3443",
            more: TLS_BEHIND_PROXY,
            ..BEHIND_PROXY
        },
        Setup {
            upstream: "https://mcp.example.com/backend",
            ..BEHIND_PROXY
        },
    ] {
        assert_eq!(warned(setup, false), Vec::<String>::new(), "{setup:?}");
    }
}

/// J9: the network of a container decides who can connect to its port.
#[test]
fn an_open_listener_of_a_container_causes_no_warning() {
    let open = Setup {
        listen: "0.0.0.0:3000",
        ..BEHIND_PROXY
    };
    assert_eq!(warned(open, false).len(), 1);
    assert_eq!(warned(open, true), Vec::<String>::new());
}

/// J9: the name of a Service with its namespace is private, but only in a cluster.
#[test]
fn names_of_services_are_private() {
    for (url, is_public, is_public_in_cluster) in [
        ("http://mcp:8000", false, false),
        ("http://mcp.default:8000", true, false),
        ("http://mcp.default.:8000", true, false),
        ("http://mcp.default.svc:8000", false, false),
        ("http://mcp.example.com:8000", true, true),
        ("http://host.docker.internal:8000", false, false),
        ("http://10.0.0.5:8000", false, false),
    ] {
        let url = Url::parse(url).unwrap();
        assert_eq!(is_public_name(&url, false), is_public, "{url}");
        assert_eq!(is_public_name(&url, true), is_public_in_cluster, "{url}");
    }
}

/// J9: addresses that do not fit, an open listener, and upstreams that are public or this
/// server cause a warning.
#[test]
fn unsound_addresses_cause_a_warning() {
    const OF_UPSTREAM: &str = "resource[0].upstream.http = ";
    for (setup, start, words) in [
        (
            Setup {
                listen: "0.0.0.0:3000",
                ..BEHIND_PROXY
            },
            "listen = ",
            "set [tls]",
        ),
        (
            Setup {
                listen: "[::]:3000",
                ..BEHIND_PROXY
            },
            "listen = ",
            "trusted_proxies",
        ),
        (
            Setup {
                base_url: "http://127.0.0.1:4000",
                ..LOCAL
            },
            "base_url = ",
            "another port",
        ),
        (
            Setup {
                base_url: "http://[::1]:3000",
                ..LOCAL
            },
            "base_url = ",
            "another address",
        ),
        (
            Setup {
                listen: "10.0.0.5:443",
                ..BEHIND_PROXY
            },
            "base_url = ",
            "plain http",
        ),
        (
            Setup {
                base_url: "https://localhost:3000",
                ..LOCAL
            },
            "base_url = ",
            "plain http",
        ),
        (
            Setup {
                base_url: "https://localhost:3443",
                more: TLS,
                ..BEHIND_PROXY
            },
            "base_url = ",
            "another port",
        ),
        (
            Setup {
                more: TLS,
                ..BEHIND_PROXY
            },
            "base_url = ",
            "\"0.0.0.0:443\"",
        ),
        (
            Setup {
                upstream: "http://localhost:3000/mcp",
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "itself",
        ),
        (
            Setup {
                upstream: "http://[::ffff:127.0.0.1]:3000/mcp",
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "itself",
        ),
        (
            Setup {
                upstream: "http://0.0.0.0:3000/mcp",
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "itself",
        ),
        (
            Setup {
                upstream: "https://mcp.example.com/mcp",
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "itself",
        ),
        (
            Setup {
                upstream: "http://203.0.113.9/mcp",
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "public",
        ),
        (
            Setup {
                upstream: "https://[2620:fe::fe]/mcp",
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "public",
        ),
        (
            Setup {
                upstream: "http://backend.example.com:8000/mcp",
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "plain http to a public name",
        ),
        (
            Setup {
                listen: "0.0.0.0:80",
                upstream: "http://127.0.0.1/mcp",
                more: PROXY,
                ..BEHIND_PROXY
            },
            OF_UPSTREAM,
            "itself",
        ),
    ] {
        let warnings = warned(setup, false);
        assert_eq!(warnings.len(), 1, "{setup:?}: {warnings:?}");
        assert!(warnings[0].starts_with(start), "{warnings:?}");
        assert!(warnings[0].contains(words), "{warnings:?}");
    }
}

/// J9: networks of proxies that have clients in them cause a warning, and those of one operator do
/// not.
#[test]
fn wide_networks_of_proxies_cause_a_warning() {
    let warned_of = |more| {
        warned(
            Setup {
                more,
                ..BEHIND_PROXY
            },
            false,
        )
    };
    let warnings =
        warned_of("trusted_proxies = [\"0.0.0.0/0\", \"::/0\", \"2000::/3\", \"128.0.0.0/1\"]");
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
    for (warning, network) in warnings
        .iter()
        .zip(["0.0.0.0/0", "::/0", "2000::/3", "128.0.0.0/1"])
    {
        assert!(
            warning.starts_with(&format!("trusted_proxies has \"{network}\",")),
            "{warning}"
        );
    }
    let sound = "trusted_proxies = [\"10.0.0.0/8\", \"fc00::/7\", \"127.0.0.1\", \"::1\"]";
    assert_eq!(warned_of(sound), Vec::<String>::new());
}

/// J9: an address with the prefix of its network has a warning with both readings.
#[test]
fn addresses_with_a_prefix_cause_a_warning() {
    for (network, address, meant) in [
        ("10.1.2.3/8", "10.1.2.3", "10.0.0.0/8"),
        ("192.168.1.10/16", "192.168.1.10", "192.168.0.0/16"),
        ("10.0.0.1/31", "10.0.0.1", "10.0.0.0/31"),
        ("fd00::5/64", "fd00::5", "fd00::/64"),
        ("fd00::1/127", "fd00::1", "fd00::/127"),
    ] {
        let problem = network_problem(network).unwrap_or_default();
        let fix = format!("write \"{address}\" for this address alone, or \"{meant}\" for");
        assert!(problem.contains(&fix), "{network}: {problem}");
    }
    for network in [
        "10.1.2.3/32",
        "10.1.2.0/24",
        "fd00::5/128",
        "10.1.2.3/33",
        "fd00::/200",
        "proxy/8",
        "10.1.2.3",
    ] {
        assert_eq!(network_problem(network), None, "{network}");
    }
}

/// J9: warnings name `0.0.0.0` as the host of `base_url`, `trusted_proxy_header` without a trusted
/// proxy, the server as its own issuer, and the listener of `[admin]` as an upstream.
#[test]
fn places_of_other_servers_are_named() {
    const ADMIN: &str = "admin = { listen = \"127.0.0.1:9900\" }";
    let own = |issuer: &'static str| {
        let base_url = Url::parse(LOCAL.base_url).unwrap();
        let config = from_text(&format!(
            "base_url = \"{base_url}\"\n{issuer}\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\""
        ));
        let mut warnings = Vec::new();
        warn_of_own_issuer(&config.unwrap(), &base_url, &mut warnings);
        warnings
    };
    for (setup, words) in [
        (
            Setup {
                base_url: "https://0.0.0.0:3000",
                ..BEHIND_PROXY
            },
            "write the name that clients use",
        ),
        (
            Setup {
                base_url: "https://[::]:3000",
                ..BEHIND_PROXY
            },
            "\"http://127.0.0.1:3000\"",
        ),
        (
            Setup {
                more: "trusted_proxy_header = \"Forwarded\"",
                ..BEHIND_PROXY
            },
            "has no effect without trusted_proxies",
        ),
        (
            Setup {
                upstream: "http://localhost:9900/mcp",
                more: ADMIN,
                ..BEHIND_PROXY
            },
            "is the listener of [admin]",
        ),
    ] {
        let warnings = warned(setup, false);
        assert_eq!(warnings.len(), 1, "{setup:?}: {warnings:#?}");
        assert!(warnings[0].contains(words), "{words}: {warnings:#?}");
    }
    for setup in [
        Setup {
            more: ADMIN,
            ..BEHIND_PROXY
        },
        Setup {
            more: "trusted_proxies = [\"127.0.0.1\"]\ntrusted_proxy_header = \"Forwarded\"",
            ..BEHIND_PROXY
        },
        Setup {
            more: "admin = { listen = \"unix:/run/admin.sock\" }",
            ..BEHIND_PROXY
        },
    ] {
        assert_eq!(warned(setup, false), Vec::<String>::new(), "{setup:?}");
    }
    let found = own("[[issuer]]\nissuer = \"http://localhost:3000/realms/prod\"");
    assert!(
        found.len() == 1 && found[0].contains("issues no tokens"),
        "{found:#?}"
    );
    for issuer in [
        "[[issuer]]\nissuer = \"http://127.0.0.1:9000\"",
        "[[issuer]]\nissuer = \"https://auth.example.com:3000\"",
    ] {
        assert_eq!(own(issuer), Vec::<String>::new(), "{issuer}");
    }
}

/// J9: a proxy on this machine alone does not need a listener on all addresses.
#[test]
fn a_local_proxy_needs_no_open_listener() {
    let open = |more, is_container| {
        let setup = Setup {
            listen: "0.0.0.0:3000",
            upstream: "http://mcp:8000/mcp",
            more,
            ..BEHIND_PROXY
        };
        warned(setup, is_container)
    };
    for local in [
        "trusted_proxies = [\"127.0.0.1\"]",
        "trusted_proxies = [\"127.0.0.0/8\", \"::1\"]",
    ] {
        let found = open(local, false);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].ends_with("write listen = \"127.0.0.1:3000\""));
        assert_eq!(open(local, true), Vec::<String>::new());
    }
    for remote in [
        "trusted_proxies = [\"127.0.0.1\", \"10.0.0.5\"]",
        "trusted_proxies = [\"10.0.0.0/8\"]",
    ] {
        assert_eq!(open(remote, false), Vec::<String>::new());
    }
}
