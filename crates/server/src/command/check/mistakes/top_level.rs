//! Mistakes at the top level.

use super::{BASE_URL, LISTEN, Mistake, TIMEOUT};

pub(super) const TOP_LEVEL: &[Mistake] = &[
    (LISTEN, "listen = 127.0.0.1:3000", 1, "listen: ", "put the value in double quotes"),
    (LISTEN, "listen = 3000", 1, "listen is an integer", "such as listen = \"127.0.0.1:3000\""),
    (LISTEN, "listen = \":3000\"", 1, "listen: \":3000\" has no address", "write \"127.0.0.1:3000\" for this machine"),
    (LISTEN, "listen = \"127.0.0.1\"", 1, "listen: \"127.0.0.1\" has no port", "such as \"127.0.0.1:3000\""),
    (LISTEN, "listen = \"http://127.0.0.1:3000\"", 1, "listen: ", "is a URL; write an address and a port"),
    (LISTEN, "listen = \"localhost:99999\"", 1, "listen: ", "no port from 0 to 65535"),
    (LISTEN, "listen = \"mcp.invalid:3000\"", 1, "listen: ", "cannot be resolved; write an address and a port"),
    (LISTEN, "Listen = \"127.0.0.1:3000\"", 1, "Listen is not a known key", "did you mean `listen`?"),
    (LISTEN, "host = \"127.0.0.1\"", 1, "host is not a known key", "use one of"),
    (LISTEN, "workers = 0", 1, "workers = 0 is outside", "1 to 256"),
    (LISTEN, "workers = -2", 1, "workers is an integer", "expected a non-negative integer"),
    (LISTEN, "reload = \"auto\"", 1, "reload has an unknown value", "write one of \"signal\", \"watch\""),
    (LISTEN, "state_dir = \"\"", 1, "state_dir is empty", "name a directory, or \"off\""),
    (
        LISTEN,
        "trusted_proxies = \"10.0.0.0/8\"",
        1,
        "trusted_proxies is a string",
        "such as trusted_proxies = [\"10.0.0.0/8\"]",
    ),
    (LISTEN, "trusted_proxies = [\"nginx\"]", 1, "trusted_proxies: ", "a network such as `10.0.0.0/8`"),
    (LISTEN, "shutdown_timeout = 10", 1, "shutdown_timeout is an integer", "such as shutdown_timeout = \"10s\""),
    (LISTEN, "dangerous_allow_unauthenticated_network = \"true\"", 1, "dangerous_", "write it without quotes"),
    (BASE_URL, "base_url = \"http://mcp.example.com\"", 2, "base_url = ", "use https"),
    (BASE_URL, "base_url = \"https://mcp.example.com/mcp\"", 2, "base_url = ", "put the path into `resource.endpoint`"),
    (
        BASE_URL,
        "base_url = \"mcp.example.com\"",
        2,
        "base_url = \"mcp.example.com\" is not a URL",
        "write it as \"https://",
    ),
    (BASE_URL, "base_url = \"wss://mcp.example.com\"", 2, "base_url = ", "use https"),
    (BASE_URL, "base-url = \"https://mcp.example.com\"", 2, "base-url is not a known key", "did you mean `base_url`?"),
    (BASE_URL, "", 1, "base_url is missing", "add base_url = \"https://mcp.example.com\""),
    (BASE_URL, "base_url = \"\"", 2, "base_url = \"\" is not a URL", "write it as \"https://"),
    (TIMEOUT, "workers = 4", 13, "session.workers is a top-level key", "above the first table, [[issuer]] in line 4"),
];
