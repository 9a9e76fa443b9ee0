use std::{
    collections::HashMap,
    hash::Hasher as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portcullis_metadata::{AccessToken, IntrospectionResponse};
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use tokio::sync::watch;
use zeroize::Zeroizing;

use super::error::CallError;

/// What a call brought.
pub(crate) type Outcome = Result<Arc<IntrospectionResponse>, CallError>;
/// Where everybody who waits for a call reads what it brought.
pub(crate) type Answered = watch::Receiver<Option<Outcome>>;

/// Sees to it that an issuer is asked by one call a token at a time, and by so many at once.
///
/// A call is known by a keyed hash of its token. The lock is held for a few assignments, never across a call.
pub(crate) struct Calls {
    key: Zeroizing<[u8; 16]>,
    most: usize,
    under_way: Mutex<HashMap<u128, Answered>>,
}

/// What became of the wish to ask about a token.
pub(crate) enum Boarding {
    /// A call is to be started; what it brings goes to the ticket.
    Start(Ticket, Answered),
    /// One for the same token is under way already.
    Join(Answered),
    /// As many as may run are under way.
    Full,
}

/// A call under way. When it is dropped, everybody who waits is told the outcome, also when the call's task is dropped
/// halfway or panics, and the token may be asked about again.
pub(crate) struct Ticket {
    calls: Arc<Calls>,
    call: u128,
    sender: watch::Sender<Option<Outcome>>,
    outcome: Option<Outcome>,
}

impl Calls {
    pub(crate) fn new(most: usize) -> Result<Arc<Self>, getrandom::Error> {
        let mut key = Zeroizing::new([0; 16]);
        getrandom::fill(key.as_mut_slice())?;
        Ok(Arc::new(Self { key, most, under_way: Mutex::default() }))
    }

    pub(crate) fn board(self: &Arc<Self>, token: &AccessToken) -> Boarding {
        let call = self.hash(token);
        let mut under_way = self.lock();
        if let Some(answered) = under_way.get(&call) {
            return Boarding::Join(answered.clone());
        }
        if under_way.len() >= self.most {
            return Boarding::Full;
        }
        let (sender, answered) = watch::channel(None);
        under_way.insert(call, answered.clone());
        Boarding::Start(Ticket { calls: Arc::clone(self), call, sender, outcome: None }, answered)
    }

    fn hash(&self, token: &AccessToken) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(token.secret().as_bytes());
        hasher.finish128().as_u128()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u128, Answered>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    pub(crate) fn land(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or(Err(CallError::Interrupted));
        self.calls.lock().remove(&self.call);
        self.sender.send_replace(Some(outcome));
    }
}

pub(crate) async fn outcome(mut answered: Answered) -> Outcome {
    match answered.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(outcome)) => outcome.clone(),
        Ok(None) | Err(_) => Err(CallError::Interrupted),
    }
}
