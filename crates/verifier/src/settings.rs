/// Why settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The machine's random generator fails.
    #[error("the machine's random generator fails")]
    Random,
}
