//! Suggestions: the known name that is most similar to a written one.

/// Returns the known name that is most similar to the written one, if the similarity is at least
/// `least`, from 0 to 1.
pub(super) fn similar<'a>(written: &str, known: &[&'a str], least: f64) -> Option<&'a str> {
    let likeness = |name: &&'a str| strsim::jaro_winkler(written, name);
    let best = known
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= least).then_some(best)
}

/// Suggests the known name that is most similar to the written one.
pub fn nearest(written: &str, known: &[&str]) -> String {
    similar(written, known, 0.0)
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}
