mod keys;

use anyhow::{Context as _, bail, ensure};
use portcullis_endpoint::EndedSessionStatus;
use portcullis_session::{SessionKey, SessionKeys, SessionSettings};

use super::FileVersion;
use crate::{
    Diagnostic, Diagnostics, KeyPath, Span,
    file::{EndedStatus, Session, WithoutState},
};

pub use keys::KeySources;

/// The shortest idle timeout and lifetime.
const SHORTEST_TIMEOUT: Span = Span::secs(1);
/// The longest idle timeout and lifetime.
const LONGEST_TIMEOUT: Span = Span::secs(30 * 24 * 60 * 60);
/// The largest `max_total`.
const MOST_SESSIONS: usize = 10_000_000;
/// The largest `max_per_owner`.
const MOST_SESSIONS_OF_OWNER: usize = 1_000_000;

/// The validated session settings.
pub struct SessionPlan {
    /// The limits, times and keys of the store.
    pub settings: SessionSettings,
    /// The status of a request with an ended session.
    pub ended_status: EndedSessionStatus,
    /// What happens when the state directory cannot be used.
    pub without_state: WithoutState,
    /// `None` if no keys are configured.
    pub key_sources: Option<KeySources>,
    /// The versions of the key files before they were read.
    pub key_versions: Vec<Option<FileVersion>>,
}

/// Validates `[session]` and reads the keys; without configured keys, generates one.
///
/// Adds an error for each value out of its range and for each unusable key. No error contains a
/// part of a key. Returns `None` if there is one.
pub(super) fn plan(configured: &Session, errors: &mut Diagnostics<'_>) -> Option<SessionPlan> {
    let times = [
        ("idle_timeout", configured.idle_timeout),
        ("lifetime", configured.lifetime),
    ];
    let times = times.map(|(name, span)| errors.take(name, check_timeout(name, span)));
    let counts = [
        ("max_total", configured.max_total, MOST_SESSIONS),
        (
            "max_per_owner",
            configured.max_per_owner,
            MOST_SESSIONS_OF_OWNER,
        ),
    ];
    let counts =
        counts.map(|(name, count, most)| errors.take(name, check_count(name, count, most)));
    let ended_status = errors.take("ended_status", ended_status(configured.ended_status));
    let key_sources = configured.keys.clone().map(KeySources);
    let key_versions = key_sources
        .as_ref()
        .map(KeySources::versions)
        .unwrap_or_default();
    let keys = match &key_sources {
        Some(sources) => sources.collect(errors),
        None => {
            let random =
                SessionKey::random().context("the operating system returned no random bytes");
            errors.take("keys", random).map(SessionKeys::from)
        }
    };
    let per_subject = errors.take("max_per_subject", check_subject_limit(configured));
    times
        .into_iter()
        .chain(counts)
        .chain([per_subject])
        .collect::<Option<()>>()?;
    let mut settings = SessionSettings::new(keys?);
    settings.idle_timeout = configured.idle_timeout.0;
    settings.lifetime = configured.lifetime.0;
    settings.max_total = configured.max_total;
    settings.max_per_owner = configured.max_per_owner;
    settings.max_per_subject = configured.max_per_subject;
    Some(SessionPlan {
        settings,
        ended_status: ended_status?,
        without_state: configured.without_state,
        key_sources,
        key_versions,
    })
}

/// Returns warnings about settings that another one limits, unless they have their default.
pub(super) fn warnings(configured: &Session) -> Vec<Diagnostic> {
    let Session {
        idle_timeout,
        lifetime,
        max_total,
        max_per_owner,
        max_per_subject,
        ..
    } = configured;
    let default = Session::default();
    let mut warnings = Vec::new();
    if idle_timeout > lifetime && *idle_timeout != default.idle_timeout {
        warnings.push(format!(
            "session.idle_timeout = \"{idle_timeout}\" has no effect, because every session ends after session.lifetime = \
             \"{lifetime}\"; make it shorter"
        ));
    }
    if max_per_owner > max_total && *max_per_owner != default.max_per_owner {
        warnings.push(format!(
            "session.max_per_owner = {max_per_owner} has no effect on sessions, because all owners together have at most \
             session.max_total = {max_total}; make it smaller, so that one owner cannot use all"
        ));
    }
    if let Some(max_per_subject) = max_per_subject.filter(|most| most > max_total) {
        warnings.push(format!(
            "session.max_per_subject = {max_per_subject} has no effect, because all subjects together have at most session.max_total = \
             {max_total}; make it smaller, so that one subject cannot use all"
        ));
    }
    warnings
        .iter()
        .map(|text| Diagnostic::new(&KeyPath::default(), text))
        .collect()
}

fn check_timeout(name: &str, span: Span) -> anyhow::Result<()> {
    ensure!(
        (SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&span),
        "{name} = \"{span}\" is outside {SHORTEST_TIMEOUT} to {LONGEST_TIMEOUT}"
    );
    Ok(())
}

fn check_count(name: &str, count: usize, most: usize) -> anyhow::Result<()> {
    ensure!(
        (1..=most).contains(&count),
        "{name} = {count} is outside 1 to {most}"
    );
    Ok(())
}

fn check_subject_limit(configured: &Session) -> anyhow::Result<()> {
    let Some(max_per_subject) = configured.max_per_subject else {
        return Ok(());
    };
    check_count("max_per_subject", max_per_subject, MOST_SESSIONS)?;
    ensure!(
        max_per_subject >= configured.max_per_owner,
        "max_per_subject = {max_per_subject} is less than max_per_owner = {}, which is the limit of one of the subject's clients; \
         make it larger",
        configured.max_per_owner
    );
    Ok(())
}

fn ended_status(status: EndedStatus) -> anyhow::Result<EndedSessionStatus> {
    match status {
        EndedStatus::Auto => Ok(EndedSessionStatus::Auto),
        EndedStatus::Always(400) => Ok(EndedSessionStatus::BadRequest),
        EndedStatus::Always(404) => Ok(EndedSessionStatus::NotFound),
        EndedStatus::Always(other) => {
            bail!("ended_status = {other} is neither 400 nor 404; write one of them, or \"auto\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(change: impl FnOnce(&mut Session)) -> Result<SessionPlan, Vec<String>> {
        let mut session = Session::default();
        change(&mut session);
        Diagnostics::collect(|errors| plan(&session, &mut errors.table("session")))
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    /// E9: every value has a range, and every value outside has its error.
    #[test]
    fn values_have_ranges() {
        for span in [SHORTEST_TIMEOUT, LONGEST_TIMEOUT] {
            assert!(
                planned(|session| (session.idle_timeout, session.lifetime) = (span, span)).is_ok()
            );
        }
        assert!(
            planned(|session| (session.max_total, session.max_per_owner) = (10_000_000, 1_000_000))
                .is_ok()
        );
        for (status, expected) in [
            (EndedStatus::Auto, EndedSessionStatus::Auto),
            (EndedStatus::Always(400), EndedSessionStatus::BadRequest),
            (EndedStatus::Always(404), EndedSessionStatus::NotFound),
        ] {
            assert_eq!(
                planned(|session| session.ended_status = status)
                    .ok()
                    .unwrap()
                    .ended_status,
                expected
            );
        }
        let errors = planned(|session| {
            session.idle_timeout = Span::secs(0);
            session.lifetime = Span::secs(30 * 24 * 60 * 60 + 1);
            session.max_total = 10_000_001;
            session.max_per_owner = 0;
            session.max_per_subject = Some(0);
            session.ended_status = EndedStatus::Always(410);
            session.keys = Some(vec![]);
        });
        let expected = [
            "session.idle_timeout = \"0s\" is outside 1s to",
            "session.lifetime = ",
            "session.max_total = 10000001 is outside 1 to 10000000",
            "session.max_per_owner = 0 is outside 1 to 1000000",
            "session.ended_status = 410 is neither 400 nor 404",
            "session.keys: the list of session keys is empty",
            "session.max_per_subject = 0 is outside 1 to 10000000",
        ];
        let errors = errors.err().unwrap();
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.starts_with(expected), "{error}");
        }
    }

    /// E9: a value that another one makes useless causes a warning, unless it is the default.
    #[test]
    fn useless_values_cause_warnings() {
        let warned = |change: fn(&mut Session)| {
            let mut session = Session::default();
            change(&mut session);
            warnings(&session)
                .iter()
                .map(|warning| warning.key.to_string())
                .collect::<Vec<_>>()
        };
        assert!(warned(|_| {}).is_empty());
        assert!(
            warned(|session| (session.lifetime, session.max_total) = (Span::secs(60), 1))
                .is_empty()
        );
        assert_eq!(
            warned(|session| {
                (session.idle_timeout, session.lifetime) = (Span::secs(120), Span::secs(60));
                (session.max_per_owner, session.max_total) = (20, 10);
            }),
            ["session.idle_timeout", "session.max_per_owner"]
        );
        assert_eq!(
            warned(|session| {
                (session.max_per_subject, session.max_total) = (Some(1000), 500);
            }),
            ["session.max_per_subject"]
        );
        assert!(warned(|session| session.max_per_subject = Some(session.max_total)).is_empty());
    }
}
