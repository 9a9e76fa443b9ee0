use parking_lot::Mutex;

use super::{exposition::Exposition, family::Family};

/// The maximum number of codes. The program has fewer.
const MAX_CODES: usize = 512;

/// Counts by a text of the program, such as a reason code. Texts from outside cannot be counted.
#[derive(Debug, Default)]
pub struct CodeCounts(Mutex<Vec<(&'static str, u64)>>);

impl CodeCounts {
    /// Counts one. Allocates only for a code that is new.
    pub fn add(&self, code: &'static str) {
        let mut counts = self.0.lock();
        if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == code) {
            *count += 1;
        } else if counts.len() < MAX_CODES {
            counts.push((code, 1));
        }
    }

    pub(super) fn add_to(&self, sum: &mut Vec<(&'static str, u64)>) {
        for (code, count) in self.0.lock().iter() {
            match sum.iter_mut().find(|(known, _)| known == code) {
                Some((_, known)) => *known += count,
                None => sum.push((code, *count)),
            }
        }
    }

    /// Writes each count, with its code as a label of this name.
    pub fn write(
        &self,
        out: &mut Exposition,
        family: &Family,
        label: &str,
        labels: &[(&str, &str)],
    ) {
        let mut counts = self.0.lock().clone();
        counts.sort_unstable();
        for (code, count) in counts {
            out.value(family, &[labels, &[(label, code)]].concat(), count);
        }
    }
}
