//! Files that are not TOML.

use super::{BASE_URL, Mistake, SCOPES, TIMEOUT};

pub(super) const SYNTAX: &[Mistake] = &[
    Mistake {
        sound: BASE_URL,
        mistake: "base_url = \"https://mcp.example.com",
        line: 2,
        start: "base_url: ",
        fix: "close the text with the quote",
    },
    Mistake {
        sound: BASE_URL,
        mistake: "base_url = “https://mcp.example.com”",
        line: 2,
        start: "base_url: ",
        fix: "typographic quotes",
    },
    Mistake {
        sound: BASE_URL,
        mistake: "base_url: \"https://mcp.example.com\"",
        line: 2,
        start: "base_url: ",
        fix: "write key = value",
    },
    Mistake {
        sound: BASE_URL,
        mistake: "base_url = \"https://a.example\"\nbase_url = \"https://b.example\"",
        line: 3,
        start: "base_url: ",
        fix: "remove one",
    },
    Mistake {
        sound: TIMEOUT,
        mistake: "idle_timeout = 30m",
        line: 13,
        start: "session.idle_timeout: ",
        fix: "double quotes",
    },
    Mistake {
        sound: "[[resource]]",
        mistake: "jwks_file = \"C:\\keys\\jwks.json\"\n[[resource]]",
        line: 7,
        start: "issuer[0].jwks_file: ",
        fix: "backslash twice",
    },
    Mistake {
        sound: "[[resource]]",
        mistake: "require_at_jwt = True\n[[resource]]",
        line: 7,
        start: "issuer[0].require_at_jwt: ",
        fix: "in lower case",
    },
    Mistake {
        sound: "[[resource]]",
        mistake: "[[resource]",
        line: 7,
        start: "",
        fix: "write a header as [table], or [[table]]",
    },
    Mistake {
        sound: SCOPES,
        mistake: "required_scopes = [\"a\" \"b\"]",
        line: 9,
        start: "resource[0].required_scopes: ",
        fix: "separate the entries by commas",
    },
    Mistake { sound: "[session]", mistake: "[session]\n[session]", line: 13, start: "", fix: "already above" },
];
