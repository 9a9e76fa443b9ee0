//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

use super::{
    family::{FAMILIES, Family},
    histogram::{BOUNDS, Counted},
};

/// Samples by family. Families are written in the order of [`FAMILIES`], those without samples not
/// at all.
pub struct Exposition(Vec<String>);

impl Default for Exposition {
    fn default() -> Self {
        Self(vec![String::new(); FAMILIES.len()])
    }
}

impl Exposition {
    /// The media type of the text.
    pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Adds a sample.
    pub fn value(&mut self, family: &Family, labels: &[(&str, &str)], value: impl Display) {
        self.sample(family, "", labels, value);
    }

    /// Adds the samples of a histogram of durations.
    pub(super) fn histogram(
        &mut self,
        family: &Family,
        labels: &[(&str, &str)],
        counted: &Counted,
    ) {
        let mut count = 0;
        let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        for (bound, bucket) in bounds.zip(counted.buckets) {
            count += bucket;
            self.sample(
                family,
                "_bucket",
                &[labels, &[("le", bound)]].concat(),
                count,
            );
        }
        self.sample(family, "_sum", labels, seconds(counted.sum_micros));
        self.sample(family, "_count", labels, count);
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        let mut text = String::new();
        for (family, samples) in FAMILIES
            .iter()
            .zip(&self.0)
            .filter(|(_, samples)| !samples.is_empty())
        {
            let Family {
                name,
                metric_type,
                help,
                ..
            } = family;
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {metric_type}\n{samples}"
            );
        }
        text
    }

    fn sample(
        &mut self,
        family: &Family,
        suffix: &str,
        labels: &[(&str, &str)],
        value: impl Display,
    ) {
        let is_listed =
            |name: &str| name == "le" || family.labels.split(", ").any(|known| known == name);
        debug_assert!(
            labels.iter().all(|(name, _)| is_listed(name)),
            "{} has another label",
            family.name
        );
        let position = FAMILIES.iter().position(|known| known.name == family.name);
        let Some(out) = position.and_then(|position| self.0.get_mut(position)) else {
            return;
        };
        let _ = write!(out, "{}{suffix}", family.name);
        for (position, (name, value)) in labels.iter().enumerate() {
            let _ = write!(out, "{}{name}=\"", if position == 0 { '{' } else { ',' });
            value.chars().for_each(|character| match character {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                character => out.push(character),
            });
            out.push('"');
        }
        let _ = writeln!(out, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

/// Writes microseconds as seconds.
pub(super) fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::{super::family, *};

    /// J7: the text has the help and the type once per family, and label values are escaped.
    #[test]
    fn the_text_is_that_of_prometheus() {
        let mut out = Exposition::default();
        out.value(&family::STREAMS, &[], 3);
        for issuer in ["https://i.example", "a\"b\\c\nd"] {
            out.value(&family::ISSUER_USABLE, &[("issuer", issuer)], 1);
        }
        let text = out.finish();
        let expected = "# HELP portcullis_streams Open event streams.\n# TYPE portcullis_streams gauge\nportcullis_streams 3\n";
        assert!(text.contains(expected), "{text}");
        assert!(
            text.contains("portcullis_issuer_usable{issuer=\"a\\\"b\\\\c\\nd\"} 1\n"),
            "{text}"
        );
        assert_eq!(
            text.matches("# TYPE portcullis_issuer_usable gauge\n")
                .count(),
            1
        );
    }

    /// J7: the buckets of a histogram are cumulative.
    #[test]
    fn histograms_are_cumulative() {
        let histogram = super::super::histogram::Histogram::default();
        for micros in [10, 60, 40_000_000] {
            histogram.observe(std::time::Duration::from_micros(micros));
        }
        let mut counted = Counted::default();
        let mut out = Exposition::default();
        histogram.add_to(&mut counted);
        out.histogram(&family::UPSTREAM_DURATION, &[("resource", "r")], &counted);
        let text = out.finish();
        for (bound, count) in [("0.00005", 1), ("0.0001", 2), ("30", 2), ("+Inf", 3)] {
            let line = format!(
                "portcullis_upstream_duration_seconds_bucket{{resource=\"r\",le=\"{bound}\"}} {count}\n"
            );
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(text.contains("_sum{resource=\"r\"} 40.000070\n"), "{text}");
        assert!(text.contains("_count{resource=\"r\"} 3\n"), "{text}");
    }
}
