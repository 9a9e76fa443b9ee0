//! Memory, CPU time and file descriptors of the process (`/proc`, Linux).

use std::fs;

use portcullis_metadata::UnixTime;
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use super::{
    exposition::{Exposition, seconds},
    family,
};

/// Writes what `/proc` has. What cannot be read is left out.
pub(super) fn write(out: &mut Exposition, started: UnixTime) {
    out.value(
        &family::PROCESS_START,
        &[],
        seconds(started.as_millis().saturating_mul(1000)),
    );
    let cpu = fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| cpu_micros(&stat, clock_ticks_per_second()));
    if let Some(micros) = cpu {
        out.value(&family::PROCESS_CPU, &[], seconds(micros));
    }
    if let Some(pages) = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|statm| resident_pages(&statm))
    {
        out.value(
            &family::PROCESS_MEMORY,
            &[],
            pages.saturating_mul(page_size() as u64),
        );
    }
    if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
        // Without the one that reads the directory.
        out.value(
            &family::PROCESS_FDS,
            &[],
            descriptors.count().saturating_sub(1),
        );
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        out.value(&family::PROCESS_MAX_FDS, &[], limit);
    }
}

/// Returns the user and system time of `/proc/self/stat` in microseconds. The name of the program
/// may have blanks and parentheses.
fn cpu_micros(stat: &str, ticks_per_second: u64) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let ticks = fields
        .next()?
        .parse::<u64>()
        .ok()?
        .checked_add(fields.next()?.parse().ok()?)?;
    ticks.checked_mul(1_000_000)?.checked_div(ticks_per_second)
}

/// Returns the second number of `/proc/self/statm`.
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 8 0 12345";
        assert_eq!(cpu_micros(stat, 100), Some(2_000_000));
        assert_eq!(cpu_micros("", 100), None);
        assert_eq!(cpu_micros("1 (a) S", 100), None);
        assert_eq!(cpu_micros(stat, 0), None);
        assert_eq!(resident_pages("10 7 3"), Some(7));
        assert_eq!(resident_pages("10"), None);
    }

    /// J7: this process has all of them.
    #[test]
    fn this_process_is_described() {
        let mut out = Exposition::default();
        write(&mut out, UnixTime::from_secs(1_800_000_000));
        let text = out.finish();
        for name in [
            "start_time_seconds 1800000000.000000",
            "cpu_seconds_total ",
            "resident_memory_bytes ",
            "open_fds ",
            "max_fds ",
        ] {
            assert!(
                text.contains(&format!("\nprocess_{name}")),
                "{name}: {text}"
            );
        }
    }
}
