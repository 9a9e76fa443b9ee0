use std::sync::atomic::{AtomicU64, Ordering};

use crate::Principal;

/// Something that is asked of principals again and again, and that depends on nothing but what their tokens say. Each
/// principal remembers its answers to a few questions, so that what takes a look through many claims takes it once a
/// token.
///
/// Clones are the same question; two that were made apart never are.
#[derive(Clone, Debug)]
pub struct Question(u64);

/// The answers that a principal remembers. A question's answer takes the place of that of the fourth before it.
#[derive(Default)]
pub(crate) struct Answers([AtomicU64; 4]);

/// Tells an answer from an empty place.
const ANSWERED: u64 = 1 << 8;

impl Question {
    /// A question that was never asked before.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The principal's answer, found now or when it was asked before. `find` has to come to the same for clones of this
    /// question.
    pub fn ask(&self, principal: &Principal, find: impl FnOnce(&Principal) -> u8) -> u8 {
        principal.derived.answers.get_or_find(self, || find(principal))
    }
}

impl Answers {
    fn get_or_find(&self, &Question(number): &Question, find: impl FnOnce() -> u8) -> u8 {
        let place = &self.0[number as usize % self.0.len()];
        let asked = (number << 9) | ANSWERED;
        let held = place.load(Ordering::Relaxed);
        let answer = held as u8;
        if held == asked | u64::from(answer) {
            return answer;
        }
        let answer = find();
        place.store(asked | u64::from(answer), Ordering::Relaxed);
        answer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// C14: whatever was asked before, the answer is that to the question.
        #[test]
        fn answers_are_those_to_the_question(asked in proptest::collection::vec((0_u64..12, 0_u64..3), 1..60)) {
            let answers = Answers::default();
            for (number, far) in asked {
                let number = number + (far << 40);
                let right = (number * 7 + far) as u8;
                prop_assert_eq!(answers.get_or_find(&Question(number), || right), right);
                prop_assert_eq!(answers.get_or_find(&Question(number), || !right), right, "it is remembered");
            }
        }
    }

    /// C14: no question meets an empty place, nor another one's answer.
    #[test]
    fn nothing_is_answered_before_it_is_asked() {
        let answers = Answers::default();
        for number in [0, 4, 8, 0, 256, 1 << 50, (1 << 50) + 4, 0] {
            let mut found = false;
            answers.get_or_find(&Question(number), || {
                found = true;
                0
            });
            assert!(found, "{number}");
        }
    }

    #[test]
    fn questions_are_apart_and_clones_the_same() {
        let (one, other) = (Question::new(), Question::new());
        assert_ne!(one.0, other.0);
        assert_eq!(one.clone().0, one.0);
    }
}
