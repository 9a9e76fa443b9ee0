//! [`Variant`]: what is measured and compared.

/// A server, or a server with another configuration or request, that is measured in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// The upstream without anything in front of it.
    Upstream,
    /// nginx as a bare reverse proxy, with which the others are compared.
    Nginx,
    /// A reverse proxy of a few lines with hyper.
    Hyper,
    /// The server under test, with its defaults.
    Portcullis,
    /// With all checks and records.
    AllOn,
    /// With metrics.
    Metrics,
    /// With metrics and traces.
    Traces,
    /// With an opaque token that is cached.
    IntrospectionHit,
    /// With an opaque token that no request has used before.
    IntrospectionMiss,
    /// The other program of `--baseline`, with its defaults.
    Baseline,
    /// The other program, with all checks and records.
    BaselineAllOn,
}

impl Variant {
    /// The number of variants.
    pub(super) const COUNT: usize = Self::ALL.len();

    /// All variants, in the order in which they are declared.
    pub(super) const ALL: [Self; 11] = [
        Self::Upstream,
        Self::Nginx,
        Self::Hyper,
        Self::Portcullis,
        Self::AllOn,
        Self::Metrics,
        Self::Traces,
        Self::IntrospectionHit,
        Self::IntrospectionMiss,
        Self::Baseline,
        Self::BaselineAllOn,
    ];

    /// Returns the variants of a run, with or without the other program.
    pub(super) fn of_run(has_baseline: bool) -> &'static [Self] {
        if has_baseline {
            &Self::ALL
        } else {
            &Self::ALL[..Self::Baseline.index()]
        }
    }

    /// Returns the position in [`ALL`](Self::ALL).
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Returns the name in the report.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream alone",
            Self::Nginx => "nginx",
            Self::Hyper => "bare hyper proxy",
            Self::Portcullis => "portcullis",
            Self::AllOn => "all on",
            Self::Metrics => "metrics",
            Self::Traces => "metrics and traces",
            Self::IntrospectionHit => "introspection, hit",
            Self::IntrospectionMiss => "introspection, miss",
            Self::Baseline => "baseline",
            Self::BaselineAllOn => "baseline, all on",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_listed_in_the_order_of_their_numbers() {
        for (position, variant) in Variant::ALL.into_iter().enumerate() {
            assert_eq!(variant.index(), position, "{}", variant.name());
        }
        assert_eq!(Variant::of_run(true).len(), Variant::COUNT);
        assert_eq!(
            Variant::of_run(false).last(),
            Some(&Variant::IntrospectionMiss)
        );
    }
}
