//! Redis is killed and restarted, while two replicas use it.

use std::time::Duration;

use portcullis_scenarios::{
    BrokerClient, BrokerServer, Browser, HttpResponse, McpSession, Redis, Request, TokenPair,
    is_full_run,
};
use tokio::time::sleep;

use super::{
    DELAYS, Family, Storage, assert_invalid_grant,
    sign_in::{Disturbance, Step, sign_in_and_out},
    storage::Stored,
    wait_until_rejected,
};

/// Kills and restarts Redis after some of the steps. The other replica gets the next request.
struct RedisKilled<'s> {
    redis: Redis,
    after: &'s [Step],
}

impl Disturbance for RedisKilled<'_> {
    async fn after(&mut self, step: Step, server: &mut BrokerServer) {
        if self.after.contains(&step) {
            self.redis.kill().await;
            server.wait_for_loss_of_redis().await;
            self.redis.restart().await;
            server.wait_for_redis().await;
        }
        server.use_next();
    }
}

/// ST3: every response is durable in Redis. A sign-in over two replicas continues after Redis was
/// killed between two steps.
#[tokio::test]
async fn a_sign_in_survives_kills_of_redis() {
    let Some(Stored {
        mut server,
        redis: Some(redis),
    }) = Storage::TwoReplicas.start().await
    else {
        return;
    };
    let some = [Step::Approved, Step::Exchanged, Step::Revoked];
    let after: &[Step] = if is_full_run() { &Step::ALL } else { &some };
    sign_in_and_out(&mut server, &mut RedisKilled { redis, after }).await;
}

/// ST3, ST4: Redis is killed while it makes a change. The client gets a response that it can
/// repeat, at any replica: no code works twice, no refresh token is lost or has two successors, and
/// a revoked token is accepted nowhere.
#[tokio::test]
async fn requests_survive_kills_of_redis() {
    let Some(Stored {
        mut server,
        redis: Some(mut redis),
    }) = Storage::TwoReplicas.start().await
    else {
        return;
    };
    let client = BrokerClient::register(&server).await;
    let delays = if is_full_run() {
        &DELAYS
    } else {
        &DELAYS[3..4]
    };
    for &delay in delays {
        let mut run = KillsOfRedis {
            server: &mut server,
            redis: &mut redis,
            client: &client,
            delay,
        };
        let tokens = run.exchange().await;
        let tokens = run.refresh(tokens).await;
        run.revoke(&tokens).await;
    }
}

struct KillsOfRedis<'s> {
    server: &'s mut BrokerServer,
    redis: &'s mut Redis,
    client: &'s BrokerClient,
    delay: Duration,
}

impl KillsOfRedis<'_> {
    /// Exchanges a code. If Redis failed after it had used the code, the user signs in again.
    async fn exchange(&mut self) -> TokenPair {
        let authorization = self.client.authorization(self.server, "/mcp", "");
        let location = Browser::default().sign_in(&authorization, "alice").await;
        let code = BrokerClient::code(self.server, &location).await;
        let response = self.send(&self.client.exchange_request(&code)).await;
        if response.status == 200 {
            return TokenPair::parse(&response);
        }
        assert_unavailable(&response);
        let response = self.client.exchange(self.server, &code).await;
        if response.status == 200 {
            return TokenPair::parse(&response);
        }
        assert_invalid_grant(&response);
        self.client.sign_in(self.server, "alice").await
    }

    async fn refresh(&mut self, tokens: TokenPair) -> TokenPair {
        let mut family = Family::default();
        let request = self.client.refresh_request(&tokens.refresh);
        let response = self.send(&request).await;
        if response.status == 200 {
            family.add(&tokens.refresh, &TokenPair::parse(&response));
        } else {
            assert_unavailable(&response);
        }
        let next = family
            .refresh(self.server, self.client, &tokens.refresh)
            .await;
        McpSession::open(self.server, &next.access).await;
        next
    }

    async fn revoke(&mut self, tokens: &TokenPair) {
        let request = self.client.revocation_request(&tokens.refresh);
        let response = self.send(&request).await;
        if response.status != 200 {
            assert_unavailable(&response);
            self.client.revoke(self.server, &tokens.refresh).await;
        }
        for _ in 0..2 {
            let refreshed = self.client.refresh(self.server, &tokens.refresh).await;
            assert_invalid_grant(&refreshed);
            wait_until_rejected(self.server, &tokens.access).await;
            self.server.use_next();
        }
    }

    /// Sends a request, kills Redis after the delay, and starts it again after the response. The
    /// other replica gets the next request.
    async fn send(&mut self, request: &Request) -> HttpResponse {
        let address = self.server.address();
        let kill = async {
            sleep(self.delay).await;
            self.redis.kill().await;
        };
        let (response, ()) = tokio::join!(request.send(address), kill);
        self.server.wait_for_loss_of_redis().await;
        self.redis.restart().await;
        self.server.wait_for_redis().await;
        self.server.use_next();
        response
    }
}

fn assert_unavailable(response: &HttpResponse) {
    assert_eq!(response.status, 503, "{response:?}");
    let error = &response.json()["error"];
    assert_eq!(error, "temporarily_unavailable", "{response:?}");
}
