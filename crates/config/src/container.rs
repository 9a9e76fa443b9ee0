//! The container image: how the program recognizes it, and its volumes.

use std::{env, fs, path::Path};

/// The variable that the image sets.
const VARIABLE: &str = "PORTCULLIS_CONTAINER";
/// The variable that Kubernetes sets in each container.
const KUBERNETES_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";
/// The mounts of this process.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Whether this program runs in the container image, or in one that sets `PORTCULLIS_CONTAINER`.
pub fn is_container() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| !value.is_empty())
}

/// Whether this program runs in a pod of Kubernetes, in any image.
pub(crate) fn is_in_kubernetes() -> bool {
    env::var_os(KUBERNETES_VARIABLE).is_some()
}

/// Whether a directory is on a volume, so that it outlives the container. True if that is unknown.
pub fn is_on_volume(directory: &Path) -> bool {
    fs::read_to_string(MOUNTS).map_or(true, |mounts| has_mount(&mounts, directory))
}

/// Whether a directory, or one that contains it, is a mount other than the root.
fn has_mount(mounts: &str, directory: &Path) -> bool {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .map(|point| point.replace("\\040", " "))
        .any(|point| point != "/" && directory.starts_with(point))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E12: only a mount at the directory, or above it, is a volume for it.
    #[test]
    fn volumes_are_found() {
        let mounts = "22 1 0:20 / / rw - overlay overlay rw\n23 22 0:21 / /proc rw - proc proc rw\n\
                      24 22 8:1 /volumes/a /var/lib/portcullis rw,relatime - ext4 /dev/sda1 rw\n25 22 8:1 / /with\\040space rw -\n";
        for (directory, expected) in [
            ("/var/lib/portcullis", true),
            ("/var/lib/portcullis/server", true),
            ("/with space", true),
            ("/var/lib", false),
            ("/var/lib/portcullis2", false),
            ("/data", false),
        ] {
            assert_eq!(
                has_mount(mounts, Path::new(directory)),
                expected,
                "{directory}"
            );
        }
    }
}
