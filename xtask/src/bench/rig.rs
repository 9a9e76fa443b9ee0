//! All variants, running side by side in front of one upstream.

use std::{env, net::SocketAddr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, ensure};

use super::{
    figures::{Sample, Starts},
    folder::Folder,
    http::Connection,
    load, nginx, portcullis,
    process::{Memory, Process},
};

/// How often the server is started only to see how quickly it is ready.
const STARTS: usize = 5;

/// The names of the variants, in the order of [`Rig::measure`]'s numbers.
pub(super) const VARIANTS: [&str; 4] = ["upstream alone", "nginx", "bare hyper proxy", "portcullis"];
/// What the others are compared with.
pub(super) const NGINX: usize = 1;
pub(super) const PORTCULLIS: usize = 3;

/// Everything that runs. It is taken down when dropped.
pub(super) struct Rig<'a> {
    /// In the order of [`VARIANTS`]; the first is the upstream of all others.
    processes: [Process; VARIANTS.len()],
    setup: portcullis::Setup<'a>,
    request: Vec<u8>,
    pub(super) starts: Starts,
    _folder: Folder,
}

impl<'a> Rig<'a> {
    pub(super) async fn start(portcullis: &'a Path, issuer: &Path) -> anyhow::Result<Self> {
        let folder = Folder::create()?;
        let xtask = env::current_exe()?;
        let upstream = Process::announcing(Command::new(&xtask).args(["bench", "upstream"]))?;
        let proxy = Process::announcing(Command::new(&xtask).args(["bench", "proxy", &upstream.address.to_string()]))?;
        let nginx = nginx::start(folder.path(), upstream.address).await?;

        let setup = portcullis::Setup::prepare(portcullis, issuer, folder.path(), upstream.address)?;
        let mut times_to_ready = Vec::new();
        for _ in 1..STARTS {
            times_to_ready.push(setup.start().await?.1);
        }
        let (portcullis, time_to_ready) = setup.start().await?;
        times_to_ready.push(time_to_ready);
        // The runtime's own start is over, and nobody has asked for anything yet.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let starts = Starts::new(times_to_ready, portcullis.memory()?);

        setup.clear_log()?;
        let request = portcullis::tool_call(&setup.token, &setup.open_session().await?);
        ensure!(setup.lines_missing(1).await? == 0, "the first request has no access line");
        Ok(Self { processes: [upstream, nginx, proxy, portcullis], setup, request, starts, _folder: folder })
    }

    /// One variant's turn of a round.
    ///
    /// # Errors
    /// When an answer is no 200, or when the upstream was not asked exactly as often as clients were answered.
    pub(super) async fn measure(&self, variant: usize, times: usize) -> anyhow::Result<Sample> {
        let (process, requests) = (&self.processes[variant], times * load::CONNECTIONS);
        let (hits, cpu) = (self.hits().await?, process.cpu()?);
        self.setup.clear_log()?;
        let elapsed = load::run(process.address, &self.request, times).await.context(VARIANTS[variant])?;
        // Writing the log belongs to what is measured.
        let lines_missing = if variant == PORTCULLIS { self.setup.lines_missing(requests).await? } else { 0 };
        let (hits, cpu) = (self.hits().await? - hits, process.cpu()? - cpu);
        ensure!(hits == requests, "{}: {requests} answers, and the upstream was asked {hits} times", VARIANTS[variant]);
        Ok(Sample {
            cpu_us: cpu.as_secs_f64() * 1e6 / requests as f64,
            throughput: requests as f64 / elapsed.as_secs_f64(),
            lines_missing,
        })
    }

    /// The server's memory at this moment.
    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        self.processes[PORTCULLIS].memory()
    }

    /// The measured request.
    pub(super) fn request(&self) -> &[u8] {
        &self.request
    }

    /// The token in it.
    pub(super) fn token(&self) -> &str {
        &self.setup.token
    }

    /// Forgets the access lines so far.
    pub(super) fn clear_log(&self) -> anyhow::Result<()> {
        self.setup.clear_log()
    }

    /// Where the server under test listens.
    pub(super) fn protected(&self) -> SocketAddr {
        self.processes[PORTCULLIS].address
    }

    /// How many POSTs reached the upstream so far.
    async fn hits(&self) -> anyhow::Result<usize> {
        let address: SocketAddr = self.processes[0].address;
        let mut connection = Connection::open(address).await?;
        Ok(std::str::from_utf8(connection.get("/").await?.ok()?.body)?.parse()?)
    }
}
