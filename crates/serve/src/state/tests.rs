//! A reload keeps the parts of the state that it does not change.

use portcullis_metadata::SystemClock;
use portcullis_telemetry::LogFormat;

use super::*;
use portcullis_config::from_text;

use crate::{observers::Observers, persistence::session_persistence::SessionPersistence};

const CONFIG: &str = r#"
    base_url = "http://127.0.0.1:3000"
    [[issuer]]
    issuer = "https://a.example"
    [[issuer]]
    issuer = "https://b.example"
    [limits]
    per_address = { requests = 9, per = "1s" }
    per_principal = { requests = 9, per = "1s" }
    [[resource]]
    endpoint = "/one"
    issuers = ["https://a.example"]
    upstream = { http = "http://127.0.0.1:1/" }
    [[resource.rule]]
    method = "tools/*"
    limit = { requests = 9, per = "1s" }
    [[resource.rule]]
    method = "prompts/*"
    limit = { requests = 9, per = "1s" }
    [[resource]]
    endpoint = "/two"
    upstream = "demo"
"#;

fn plan(edits: &[(&str, &str)]) -> Plan {
    let mut text = CONFIG.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Plan::new(&from_text(&text).unwrap()).unwrap()
}

/// The parts that a state has in common with the one before: issuers, then of each resource itself,
/// its verifier and its upstream, then limits of rules and of all resources.
#[derive(Debug, PartialEq)]
struct Kept {
    issuers: [bool; 2],
    resources: [[bool; 3]; 2],
    rule_limits: [bool; 2],
    per_address: bool,
    in_flight: bool,
    body_budget: bool,
}

const ALL: Kept = Kept {
    issuers: [true; 2],
    resources: [[true; 3]; 2],
    rule_limits: [true; 2],
    per_address: true,
    in_flight: true,
    body_budget: true,
};

/// Returns which parts a reload with these edits keeps.
fn kept(edits: &[(&str, &str)]) -> Kept {
    let first = plan(&[]);
    let access = Arc::new(AccessLog::without_writer(LogFormat::default()));
    let (process, _) = Process::new(
        &first,
        crate::Product::default(),
        Arc::new(SystemClock::new()),
        Observers {
            access,
            audit: None,
            metrics: None,
            traces: None,
        },
        &mut SessionPersistence::in_memory(&first),
    );
    let old = ServerState::new(&first, &process, None).unwrap();
    let new = ServerState::new(&plan(edits), &process, Some(&old)).unwrap();
    let same = |old: &Option<Arc<_>>, new: &Option<Arc<_>>| {
        Arc::ptr_eq(old.as_ref().unwrap(), new.as_ref().unwrap())
    };
    let resource = |position: usize| {
        let old = &old.resources[position];
        let new = &new.resources[position];
        let verifier = Arc::ptr_eq(
            old.verifier.as_ref().unwrap(),
            new.verifier.as_ref().unwrap(),
        );
        [
            Arc::ptr_eq(old, new),
            verifier,
            Arc::ptr_eq(&old.upstream, &new.upstream),
        ]
    };
    let rule_limit = |rule: usize| {
        Arc::ptr_eq(
            &old.resources[0].rule_limits[rule].limiter,
            &new.resources[0].rule_limits[rule].limiter,
        )
    };
    Kept {
        issuers: [0, 1].map(|position| {
            Arc::ptr_eq(&old.issuers[position].issuer, &new.issuers[position].issuer)
        }),
        resources: [resource(0), resource(1)],
        rule_limits: [rule_limit(0), rule_limit(1)],
        per_address: same(&old.limits.guard.per_address, &new.limits.guard.per_address),
        in_flight: match (&old.limits.guard.in_flight, &new.limits.guard.in_flight) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            _ => false,
        },
        body_budget: Arc::ptr_eq(&old.limits.body_budget, &new.limits.body_budget),
    }
}

/// J10: what has not changed is used again, with its keys, cached tokens, counts and connections.
#[tokio::test]
async fn unchanged_parts_are_kept() {
    assert_eq!(kept(&[]), ALL);
    let changed_resource = [[false, true, true], [true; 3]];
    assert_eq!(
        kept(&[("\"/one\"", "\"/one\"\nrealm = \"r\"")]),
        Kept {
            resources: changed_resource,
            ..ALL
        }
    );
    let changed_rule = kept(&[("\"tools/*\"", "\"tools/call\"")]);
    assert_eq!(
        changed_rule,
        Kept {
            resources: changed_resource,
            rule_limits: [false, true],
            ..ALL
        }
    );

    let changed_upstream = kept(&[("127.0.0.1:1/", "127.0.0.1:2/")]);
    assert_eq!(
        changed_upstream,
        Kept {
            resources: [[false, true, false], [true; 3]],
            ..ALL
        }
    );
    let changed_issuer = kept(&[(
        "\"https://b.example\"",
        "\"https://b.example\"\nleeway = \"1s\"",
    )]);
    let resources = [[true; 3], [false, false, true]];
    assert_eq!(
        changed_issuer,
        Kept {
            issuers: [true, false],
            resources,
            ..ALL
        }
    );

    let changed_rate = kept(&[("requests = 9", "requests = 8")]);
    let resources = [[false, true, true]; 2];
    assert_eq!(
        changed_rate,
        Kept {
            resources,
            per_address: false,
            ..ALL
        }
    );
    let changed_budget = kept(&[("[limits]", "[limits]\nbody_budget = 99999999")]);
    assert_eq!(
        changed_budget,
        Kept {
            resources,
            body_budget: false,
            ..ALL
        }
    );

    let changed_cache = kept(&[("[limits]", "[limits]\ncached_tokens = 99")]);
    assert_eq!(
        changed_cache,
        Kept {
            resources: [[false, false, true]; 2],
            ..ALL
        }
    );
}
