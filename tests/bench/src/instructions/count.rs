//! Counts the instructions of a case.

use std::{fs, path::Path};

use anyhow::Context as _;
use portcullis_scenarios::{ReservedPort, Scratch};

use super::{
    Programs, case::Case, counts::Counts, profile::Profile, server::CountedServer,
    traffic::Traffic, upstream::Upstream,
};
use crate::{
    configuration::{BASE_URL, Configuration, ISSUER, PATH},
    issuer::BenchIssuer,
};

/// Requests before the first measurement. The server examines the first 1,000 more closely, and its
/// buffers grow.
const WARM_UP: u32 = 1_100;
/// How often each number of requests is measured. The server's timers run during some of the
/// measurements, and only add.
const ROUNDS: u32 = 6;

/// Returns the counts of one request: the difference of this number of requests and of twice as
/// many, of the rounds in which each took least. What starts and ends a measurement is in both.
/// Fails when the server does not start, or at an unexpected response.
pub(super) async fn count(
    programs: &Programs,
    case: Case,
    requests: u32,
    keep: Option<&Path>,
) -> anyhow::Result<Counts> {
    let folder = Scratch::folder("instructions");
    let path = |name: &str| folder.path().join(name);
    let upstream = Upstream::start().await?;
    let configuration = configuration(case);
    let issuer = BenchIssuer::new(
        ISSUER,
        &format!("{BASE_URL}{PATH}"),
        configuration.algorithm(),
    );
    issuer.publish(folder.path())?;
    let port = ReservedPort::new();
    let address = port.address();
    let text = configuration.text(
        address,
        upstream.address,
        folder.path(),
        &path("audit.jsonl"),
    );
    fs::write(path("portcullis.toml"), text)?;
    let mut server =
        CountedServer::start(programs, folder.path(), &path("portcullis.toml"), address).await?;
    let mut traffic = Traffic::open(case, address, &issuer, &upstream)
        .await
        .with_context(|| server.log())?;

    let mut measure = async |requests| {
        traffic.send(requests).await.with_context(|| server.log())?;
        server.dump().await
    };
    measure(WARM_UP).await?;
    let (mut single, mut double) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        single.push(measure(requests).await?);
        double.push(measure(2 * requests).await?);
    }
    if let Some(folder) = keep {
        server.copy_last_dump(&folder.join(format!("callgrind.out.{}", case.name())))?;
    }
    Ok(Counts::of(&least(double)?.since(&least(single)?), requests))
}

/// Returns the shortest of some profiles of the same work.
fn least(profiles: Vec<Profile>) -> anyhow::Result<Profile> {
    profiles
        .into_iter()
        .min_by_key(Profile::total)
        .context("nothing was measured")
}

fn configuration(case: Case) -> Configuration {
    match case {
        Case::AuditedPost => Configuration::Audited,
        Case::UncachedEs256 => Configuration::Es256,
        Case::CachedPost
        | Case::StreamMessage
        | Case::Stateless
        | Case::UncachedRs256
        | Case::Refused
        | Case::Http2 => Configuration::Standard,
    }
}
