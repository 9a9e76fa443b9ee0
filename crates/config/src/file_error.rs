/// Why there is no text of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path is that of a directory.
    #[error("it is a directory")]
    Directory,
    /// There is no such file.
    #[error("the configuration file does not exist")]
    Missing,
    /// Reading failed for this reason.
    #[error(
        "the configuration file cannot be read ({0}); make it readable for the user that runs portcullis"
    )]
    Unreadable(String),
    /// The file has more than this number of bytes.
    #[error("the configuration file has more than {0} bytes")]
    TooLong(u64),
    /// The text is UTF-16.
    #[error("the configuration file is UTF-16; save it as UTF-8")]
    Utf16,
    /// The text is not UTF-8.
    #[error("the configuration file is not UTF-8; save it as UTF-8")]
    NotUtf8,
}
