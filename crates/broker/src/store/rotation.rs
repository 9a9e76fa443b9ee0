//! The rotation of refresh tokens (RFC 9700 section 4.14.2).

use portcullis_authorization_server::{ErrorResponse, Grant, Rotation, StoreError};
use portcullis_metadata::Secret;

use super::{BrokerStore, MAX_ATTEMPTS, RefreshToken, contention, malformed};
use crate::{
    keys::Purpose,
    records::{GRANTS, GrantRecord, RotationRecord, SIGN_INS},
};

/// The number of replaced tokens that are still answered. A client that refreshes more often within
/// the time of repetitions loses the oldest ones.
const MAX_ROTATIONS: usize = 16;

impl BrokerStore {
    /// Returns the grant of a refresh token. `None` if the token is unknown, or was replaced and is
    /// no longer answered.
    pub(crate) async fn find_grant_to_refresh(
        &self,
        token: &str,
    ) -> Result<Option<Grant>, StoreError> {
        let Some(presented) = self.parse_refresh_token(token) else {
            return Ok(None);
        };
        let grant = self.read_grant(&presented.grant_id).await?;
        Ok(grant.map(|grant| grant.value).and_then(|grant| {
            let is_current = presented.generation >= grant.generation?;
            let is_answered = is_current || self.repeatable(&grant, presented.generation).is_some();
            is_answered.then(|| grant.terms.grant(&presented.grant_id))?
        }))
    }

    pub(super) async fn rotate(
        &self,
        token: &str,
        check: impl Fn(&Grant) -> Result<(), ErrorResponse> + Send,
    ) -> Result<Rotation, StoreError> {
        let Some(presented) = self.parse_refresh_token(token) else {
            return Ok(Rotation::Unknown);
        };
        let id = presented.grant_id.as_bytes();
        for _ in 0..MAX_ATTEMPTS {
            let Some(current) = self.read_grant(&presented.grant_id).await? else {
                return Ok(Rotation::Unknown);
            };
            let Some(generation) = current.value.generation else {
                return Ok(Rotation::Unknown);
            };
            let grant = current
                .value
                .terms
                .grant(&presented.grant_id)
                .ok_or_else(malformed)?;
            if presented.generation < generation {
                let Some(epoch) = self.repeatable(&current.value, presented.generation) else {
                    return Ok(Rotation::Replayed(presented.grant_id));
                };
                return match check(&grant) {
                    Ok(()) => self.rotated(grant, epoch, presented.generation),
                    Err(error) => Ok(Rotation::Rejected(error)),
                };
            }
            if let Err(error) = check(&grant) {
                return Ok(Rotation::Rejected(error));
            }
            let Some(sign_in) = self.read_sign_in(&presented.grant_id).await? else {
                return Err(StoreError::GrantEnded);
            };
            let now = self.now();
            let (epoch, _) = self
                .records
                .keys()
                .current(Purpose::RefreshTokens)
                .ok_or_else(malformed)?;
            // A genuine token that is newer than the record comes from the time after a backup: the
            // record moves forward.
            let new = GrantRecord {
                last_used: now.as_secs(),
                generation: Some(presented.generation.saturating_add(1)),
                rotations: self.rotations_after(&current.value, presented.generation, epoch),
                ..current.value.clone()
            };
            let expires = now.saturating_add(self.lifetimes.grant);
            let mut change = self.records.change();
            change.expect(GRANTS, id, &current);
            change.expect(SIGN_INS, id, &sign_in);
            self.put_grant(&mut change, &presented.grant_id, &new, expires)?;
            self.put_sign_in(&mut change, &presented.grant_id, &sign_in.value, expires)?;
            if change.commit().await? {
                return self.rotated(grant, epoch, presented.generation);
            }
        }
        Err(contention())
    }

    /// Returns the result of the rotation of the token with this generation.
    fn rotated(&self, grant: Grant, epoch: u8, replaced: u64) -> Result<Rotation, StoreError> {
        let successor = RefreshToken {
            epoch,
            grant_id: grant.id.clone(),
            generation: replaced.saturating_add(1),
        };
        // A key that was removed after the rotation makes its tokens unknown.
        let refresh_token: Option<Secret> = successor.to_secret(self.records.keys());
        Ok(match refresh_token {
            Some(refresh_token) => Rotation::Rotated {
                grant,
                refresh_token: Some(refresh_token),
            },
            None => Rotation::Unknown,
        })
    }

    /// Returns the epoch of the successor of a replaced token if it is still answered.
    fn repeatable(&self, grant: &GrantRecord, generation: u64) -> Option<u8> {
        let mut rotations = grant.rotations.iter();
        let rotation = rotations.find(|rotation| rotation.generation == generation)?;
        self.is_recent(rotation).then_some(rotation.epoch)
    }

    /// Returns the replaced tokens that are still answered after the rotation of this one.
    fn rotations_after(
        &self,
        grant: &GrantRecord,
        generation: u64,
        epoch: u8,
    ) -> Vec<RotationRecord> {
        let at = self.now().as_secs();
        let recent = grant
            .rotations
            .iter()
            .filter(|rotation| self.is_recent(rotation));
        let new = RotationRecord {
            generation,
            at,
            epoch,
        };
        let mut rotations: Vec<_> = recent.copied().chain([new]).collect();
        let surplus = rotations.len().saturating_sub(MAX_ROTATIONS);
        rotations.drain(..surplus);
        rotations
    }

    /// Strict single use (`refresh_reuse = 0`) answers no replaced token.
    fn is_recent(&self, rotation: &RotationRecord) -> bool {
        let age = self.now().as_secs().saturating_sub(rotation.at);
        age < self.lifetimes.refresh_reuse.as_secs()
    }
}
