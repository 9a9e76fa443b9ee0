use std::time::Duration;

use http::{HeaderMap, StatusCode};
use portcullis_discovery::{FetchError, NetworkFailure};

use portcullis_mcp_client::RetryAfter;

/// The delays before a refused connection is retried. It is safe to retry, because nothing was
/// sent.
const CONNECT_RETRY_DELAYS: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_millis(800),
];
/// The maximum number of waits that a busy server can request.
const MAX_WAITS: u32 = 2;
/// The maximum duration of such a wait.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Decides after which delay a request is sent again, by its retries so far.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// After refused connections.
    connects: usize,
    /// After responses of a busy server.
    waits: u32,
}

impl Retries {
    /// Returns the delay after which a request is sent again that got no response. `None` if the
    /// error is final: it is not a refused connection, or was retried often enough.
    pub(super) fn delay_after_error(&mut self, error: &FetchError) -> Option<Duration> {
        let is_refused = matches!(error, FetchError::Network(error) if error.failure() == NetworkFailure::Connect);
        let delay = *CONNECT_RETRY_DELAYS
            .get(self.connects)
            .filter(|_| is_refused)?;
        self.connects += 1;
        Some(delay)
    }

    /// Returns the delay after which a request is sent again that a busy server rejected with
    /// `Retry-After`. `None` if the response is final: the server is not busy, was retried often
    /// enough, or requests a wait that is too long.
    pub(super) fn delay_after_response(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        had_token: bool,
    ) -> Option<Duration> {
        let is_busy = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
            // With `Retry-After`, it means that the token could not be validated now, not that it
            // is invalid.
            StatusCode::UNAUTHORIZED => had_token,
            _ => false,
        };
        let delay = RetryAfter::of(headers)
            .delay()
            .filter(|delay| is_busy && *delay <= MAX_WAIT && self.waits < MAX_WAITS)?;
        self.waits += 1;
        Some(delay)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;

    #[test]
    fn refused_connections_are_retried_three_times() {
        let refused = FetchError::network(NetworkFailure::Connect);
        let mut retries = Retries::default();
        assert_eq!(
            retries.delay_after_error(&FetchError::network(NetworkFailure::Interrupted)),
            None
        );
        assert_eq!(retries.delay_after_error(&FetchError::Timeout), None);
        let delays = [(); 4].map(|()| retries.delay_after_error(&refused));
        assert_eq!(
            delays,
            [200, 500, 800, 0].map(|ms| (ms > 0).then(|| Duration::from_millis(ms)))
        );
    }

    #[test]
    fn only_a_busy_server_is_waited_for() {
        for (name, status, had_token, retry_after, seconds) in [
            ("too many requests", 429, true, "5", Some(5)),
            ("unavailable", 503, false, " 30 ", Some(30)),
            ("token not validated", 401, true, "1", Some(1)),
            ("no token", 401, false, "1", None),
            ("another error", 500, true, "1", None),
            ("success", 200, true, "1", None),
            ("too long", 503, true, "31", None),
            ("a date", 503, true, "Fri, 31 Dec 1999 23:59:59 GMT", None),
            ("negative", 503, true, "-1", None),
        ] {
            let headers = HeaderMap::from_iter([(
                header::RETRY_AFTER,
                HeaderValue::from_static(retry_after),
            )]);
            let status = StatusCode::from_u16(status).unwrap();
            let delay = Retries::default().delay_after_response(status, &headers, had_token);
            assert_eq!(delay, seconds.map(Duration::from_secs), "{name}");
        }
    }

    #[test]
    fn a_server_is_waited_for_twice() {
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static("0"))]);
        let mut retries = Retries::default();
        let delays = [(); 3].map(|()| {
            retries.delay_after_response(StatusCode::SERVICE_UNAVAILABLE, &headers, true)
        });
        assert_eq!(delays.map(|delay| delay.is_some()), [true, true, false]);
        assert_eq!(
            Retries::default().delay_after_response(
                StatusCode::SERVICE_UNAVAILABLE,
                &HeaderMap::new(),
                true
            ),
            None
        );
    }
}
