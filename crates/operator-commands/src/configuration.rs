use std::path::Path;

use portcullis_config::{ConfigErrors, FileError, Loaded, Overrides, plan::all_errors};

/// Reads the configuration file that `--config` names. Fails with all errors, and with advice where
/// the file itself is the problem.
pub(crate) fn load(file: &Path, overrides: Overrides) -> Result<Loaded, ConfigErrors> {
    portcullis_config::load(file, overrides).map_err(|unusable| {
        let mut errors = all_errors(unusable);
        for located in &mut errors.0 {
            if let Some(error) = &located.file_error {
                located.text.push_str(advice(error));
            }
        }
        errors
    })
}

/// The end of an error's sentence, with its punctuation. Empty if the error names its fix.
fn advice(error: &FileError) -> &'static str {
    match error {
        FileError::Directory => "; name the configuration file in it with --config",
        FileError::Missing => "; name one with --config, or write one with `portcullis init`",
        FileError::TooLong(_) => "; name another file with --config",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// J9: the error for a file that cannot be used names the option and the command.
    #[test]
    fn the_errors_of_a_file_name_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.toml");
        let error = || {
            let text = load(&file, Overrides::default()).err().unwrap().to_string();
            let path = format!("{}: ", file.display());
            text.strip_prefix(&path).unwrap().to_owned()
        };
        assert_eq!(
            error(),
            "the configuration file does not exist; name one with --config, or write one with `portcullis init`"
        );
        fs::write(&file, "#".repeat((1 << 20) + 1)).unwrap();
        assert_eq!(
            error(),
            "the configuration file has more than 1048576 bytes; name another file with --config"
        );
        fs::write(&file, b"\xff\xfe#").unwrap();
        assert_eq!(
            error(),
            "the configuration file is UTF-16; save it as UTF-8"
        );
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(
            error(),
            "it is a directory; name the configuration file in it with --config"
        );
    }
}
