//! [`Attachments`]: values that other crates derive from a principal.

use std::{any::Any, sync::OnceLock};

/// The maximum number of values. A gateway attaches two.
const CAPACITY: usize = 3;

/// Values of different types. Each is made once and dropped with the principal.
#[derive(Default)]
pub(crate) struct Attachments([OnceLock<Box<dyn Any + Send + Sync>>; CAPACITY]);

impl Attachments {
    /// Returns the value of this type. The first call makes it. `None` if values of other types
    /// take all places.
    pub(crate) fn get_or_attach<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> Option<&T> {
        self.0
            .iter()
            .find_map(|place| place.get_or_init(|| Box::new(make())).downcast_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each type has one value, and further types have none.
    #[test]
    fn values_are_kept_by_type() {
        let attachments = Attachments::default();
        for round in 0..2 {
            assert_eq!(
                attachments
                    .get_or_attach(|| format!("text {round}"))
                    .map(String::as_str),
                Some("text 0")
            );
            assert_eq!(attachments.get_or_attach(|| round), Some(&0));
            assert_eq!(attachments.get_or_attach(|| round == 0), Some(&true));
            assert_eq!(attachments.get_or_attach(|| 'x'), None);
        }
    }
}
