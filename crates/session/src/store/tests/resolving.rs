//! Tests of identifiers: which session and owner they resolve to, and which are unknown.

use super::*;

#[test]
fn a_session_resolves_to_what_was_opened() {
    let fixture = fixture();
    let opened = fixture.open(ALICE);
    let found = fixture.resolve(ALICE, &opened).unwrap();
    assert!(Arc::ptr_eq(&opened, found.session()));
    assert_eq!(found.backend_id(), b"11111111-2222-3333-4444-555555555555");
    assert_eq!(found.protocol_version(), Some("2025-11-25"));
    assert_eq!(found.resource(), fixture.target.resource());
    assert_eq!(found.target(), &fixture.target);
    assert_eq!(fixture.store.len(), 1);
    assert!(!fixture.store.is_empty());
}

/// E3, E7, E12: a session in the table resolves only by its own identifier, for its owner, and
/// while its key is listed.
#[test]
fn a_session_in_the_table_resolves_only_by_its_own_identifier() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let unknown = |owner, identifier: &[u8]| {
        assert_eq!(
            fixture.find(owner, identifier).unwrap_err(),
            ResolveError::Unknown
        );
    };
    for _ in 0..3 {
        assert!(fixture.resolve(ALICE, &session).is_ok());
    }
    unknown(MALLORY, session.identifier().as_bytes());
    for at in 0..session.identifier().len() {
        let mut changed = session.identifier().as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        unknown(ALICE, &changed);
    }
    fixture.store.set_keys(SessionKey::new(1, &[6; 32]).into());
    unknown(ALICE, session.identifier().as_bytes());
    fixture.store.set_keys(SessionKey::new(1, &[5; 32]).into());
    assert!(fixture.resolve(ALICE, &session).is_ok());

    fixture.store.end(&session, EndReason::Deleted);
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
}

/// E3, E4: the list is searched for the key of a session once, and again when the keys change.
#[test]
fn a_key_is_searched_once() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let is_known =
        || session.is_known_as_listed(fixture.store.0.key_generation.load(Ordering::SeqCst));
    assert!(!is_known());

    drop(fixture.resolve(ALICE, &session).unwrap());
    assert!(is_known());
    fixture.store.set_keys(SessionKey::new(1, &[5; 32]).into());
    assert!(!is_known());

    drop(fixture.resolve(ALICE, &session).unwrap());
    assert!(is_known());
    for _ in 0..=u16::MAX {
        fixture.store.set_keys(SessionKey::new(1, &[5; 32]).into());
    }
    drop(fixture.resolve(ALICE, &session).unwrap());
    assert!(!is_known(), "lists are no longer told apart");

    fixture.store.set_keys(SessionKey::new(1, &[6; 32]).into());
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Unknown
    );
}

/// E1: an identifier is unknown if it is not visible ASCII, is too long, or was not issued by the
/// store.
#[test]
fn rubbish_is_unknown() {
    let fixture = fixture();
    let identifier = (*fixture.open(ALICE).identifier()).to_owned();
    let longer = format!("{identifier}A");
    let cases: [&[u8]; 8] = [
        b"",
        b" ",
        &[0xFF; 44],
        &[b'A'; 44],
        &[b'A'; 513],
        longer.as_bytes(),
        &identifier.as_bytes()[..identifier.len() - 1],
        b"11111111-2222-3333-4444-555555555555",
    ];
    for case in cases {
        let error = fixture.find(ALICE, case).unwrap_err();
        assert_eq!(error, ResolveError::Unknown, "{case:?}");
    }
}

/// E3: `Debug` prints a short hash, and neither the identifier nor the backend's.
#[test]
fn debug_shows_the_hash_only() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let held = fixture.hold(&session);
    for shown in [format!("{session:?}"), format!("{held:?}")] {
        assert!(shown.contains(&session.log_hash().to_string()), "{shown}");
    }
    let reserved = fixture.reserve(ALICE).unwrap();
    let key = SessionKey::new(1, &[5; 32]);
    let shown = format!(
        "{:?} {reserved:?} {:?} {key:?}",
        fixture.store,
        reserved.capacity_permit()
    );
    assert_eq!(
        shown,
        "SessionStore { len: 1, .. } Reservation { .. } CapacityPermit { .. } SessionKey { epoch: 1, .. }"
    );

    let shown = format!("{session:?} {held:?}");
    assert_eq!(session.log_hash().to_string().len(), 16);
    assert!(!shown.contains(&*session.identifier()));
    assert!(!shown.contains("11111111"));
    assert_ne!(session.log_hash(), fixture.open(ALICE).log_hash());
}

/// E7: for any other owner, the identifier is unknown, before and after the end of the session.
#[test]
fn foreign_use_is_unknown() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let Owner::Subject {
        issuer,
        subject,
        client,
    } = ALICE
    else {
        unreachable!()
    };
    let strangers = [
        MALLORY,
        Owner::Anonymous,
        Owner::Subject {
            issuer,
            subject,
            client: None,
        },
        Owner::Subject {
            issuer,
            subject,
            client: Some("other"),
        },
        Owner::Subject {
            issuer: "https://auth.example.com/realms/prod/",
            subject,
            client,
        },
        Owner::Subject {
            issuer,
            subject: &subject.to_uppercase(),
            client,
        },
        Owner::Client {
            issuer,
            client: subject,
        },
    ];
    for stranger in strangers {
        assert_eq!(
            fixture.resolve(stranger, &session).unwrap_err(),
            ResolveError::Unknown,
            "{stranger:?}"
        );
    }
    fixture.store.end(&session, EndReason::Deleted);
    for stranger in strangers {
        assert_eq!(
            fixture.resolve(stranger, &session).unwrap_err(),
            ResolveError::Unknown,
            "{stranger:?}"
        );
    }
}

/// E7: the identifier of a session is unknown at another resource.
#[test]
fn other_resource_is_unknown() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    let other = ResourceUri::parse("https://mcp.example.com/mcp/")
        .unwrap()
        .into();
    let error = fixture
        .store
        .resolve(
            &other,
            ALICE,
            &Scopes::empty(),
            session.identifier().as_bytes(),
        )
        .unwrap_err();
    assert_eq!(error, ResolveError::Unknown);
}

/// E7, E9: a request of another owner neither keeps the session alive nor ends it.
#[test]
fn foreign_use_does_not_touch() {
    let fixture = fixture();
    let session = fixture.open(ALICE);
    fixture.clock.advance(Duration::from_secs(29 * 60));
    assert_eq!(
        fixture.resolve(MALLORY, &session).unwrap_err(),
        ResolveError::Unknown
    );
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(
        fixture.resolve(MALLORY, &session).unwrap_err(),
        ResolveError::Unknown
    );
    assert!(fixture.ended.take().is_empty());
    assert_eq!(
        fixture.resolve(ALICE, &session).unwrap_err(),
        ResolveError::Ended
    );
}
