//! The memory of a session is bounded, and its uses allocate nothing.

use super::*;

/// E4: finding the session of an identifier allocates nothing.
#[test]
fn resolve_allocates_nothing() {
    let fixture = fixture();
    let identifier = fixture.open(ALICE).identifier();
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            assert!(fixture.find(ALICE, identifier.as_bytes()).is_ok());
        }
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn a_session_takes_at_most_520_bytes() {
    const COUNT: usize = 100_000;
    let fixture = fixture();
    let subjects: Vec<String> = (0..COUNT)
        .map(|number| format!("f81d4fae-7dec-11d0-a765-{number:012}"))
        .collect();
    let counted = allocation_counter::measure(|| {
        for subject in &subjects {
            fixture.open(Owner::Subject {
                issuer: ISSUER,
                subject,
                client: Some("4b0c3f9e-desktop-client"),
            });
        }
    });
    let each = counted.bytes_current as usize / COUNT;
    assert!(each <= 520, "{each} bytes");
}
