//! Files that are not TOML.

use super::{BASE_URL, Mistake, SCOPES, TIMEOUT};

pub(super) const SYNTAX: &[Mistake] = &[
    (BASE_URL, "base_url = \"https://mcp.example.com", 2, "base_url: ", "close the text with the quote"),
    (BASE_URL, "base_url = “https://mcp.example.com”", 2, "base_url: ", "typographic quotes"),
    (BASE_URL, "base_url: \"https://mcp.example.com\"", 2, "base_url: ", "write key = value"),
    (BASE_URL, "base_url = \"https://a.example\"\nbase_url = \"https://b.example\"", 3, "base_url: ", "remove one"),
    (TIMEOUT, "idle_timeout = 30m", 13, "session.idle_timeout: ", "double quotes"),
    (
        "[[resource]]",
        "jwks_file = \"C:\\keys\\jwks.json\"\n[[resource]]",
        7,
        "issuer[0].jwks_file: ",
        "backslash twice",
    ),
    ("[[resource]]", "require_at_jwt = True\n[[resource]]", 7, "issuer[0].require_at_jwt: ", "in lower case"),
    ("[[resource]]", "[[resource]", 7, "", "write a header as [table], or [[table]]"),
    (SCOPES, "required_scopes = [\"a\" \"b\"]", 9, "resource[0].required_scopes: ", "separate the entries by commas"),
    ("[session]", "[session]\n[session]", 13, "", "already above"),
];
