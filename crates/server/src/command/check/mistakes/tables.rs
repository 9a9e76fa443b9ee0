//! Mistakes in the other tables.

use super::{LISTEN, Mistake, TIMEOUT};

pub(super) const TABLES: &[Mistake] = &[
    (TIMEOUT, "idle_timeout = 30", 13, "session.idle_timeout is an integer", "such as idle_timeout = \"30m\""),
    (TIMEOUT, "idle_timeout = \"30\"", 13, "session.idle_timeout: \"30\" is not a duration", "such as \"30m\""),
    (TIMEOUT, "idle_timeout = \"0s\"", 13, "session.idle_timeout = \"0s\" is outside", "1s to"),
    (TIMEOUT, "timeout = \"30m\"", 13, "session.timeout is not a known key", "idle_timeout"),
    (TIMEOUT, "ended_status = 410", 13, "session.ended_status = 410 is neither", "400 nor 404"),
    (TIMEOUT, "keys = \"hunter2\"", 13, "session.keys is a string", "expected an array"),
    (TIMEOUT, "keys = [{ file = \"/nowhere/keys\" }]", 13, "session.keys: ", "name a file that this user can read"),
    (TIMEOUT, "max_body = 4096", 13, "session.max_body is not a known key", "move it to [limits]"),
    ("[session]", "[sessions]", 12, "sessions is not a known key", "did you mean `session`?"),
    ("[session]", "[[session]]", 12, "session is a single table", "write [session] instead of [[session]]"),
    (
        "[session]",
        "[limits]\nmax_body = \"4MB\"\n[session]",
        13,
        "limits.max_body is a string",
        "such as max_body = 4194304",
    ),
    (
        "[session]",
        "[limits]\nmax_body = \"4096\"\n[session]",
        13,
        "limits.max_body is a string",
        "write it without quotes",
    ),
    ("[session]", "[limits]\nmax_body = 1\n[session]", 13, "limits.max_body = 1 is outside", "1024 to"),
    (
        "[session]",
        "[limits]\nper_address = \"10/s\"\n[session]",
        13,
        "limits.per_address is a string",
        "requests = 600",
    ),
    (
        "[session]",
        "[limits]\nper_address = { requests = 10 }\n[session]",
        13,
        "limits.per_address.per is missing",
        "add per = ",
    ),
    (LISTEN, "tls = true", 1, "tls is a boolean", "expected a table"),
    (LISTEN, "audit = \"stdout\"", 1, "audit is a string", "expected a table"),
    (
        "[session]",
        "[audit]\ntarget = \"/var/log/audit.jsonl\"\n[session]",
        13,
        "audit.target is a string",
        "write target = { file = ",
    ),
    (
        "[session]",
        "[traces]\nendpoint = \"http://me:hunter2@collector.example:4318\"\n[session]",
        13,
        "traces.endpoint = \"http://…@collector.example:4318\"",
        "or http on loopback",
    ),
    ("[session]", "[audit]\ntarget = { file = \"/nowhere/a\" }\n[session]", 13, "audit.target", "folder that exists"),
    ("[session]", "[audit]\nqueue = 1\ntarget = \"stdout\"\n[session]", 13, "audit.queue = 1 is outside", "65536 to"),
];
