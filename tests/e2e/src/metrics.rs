//! `cargo xtask e2e --metrics`: every query of the dashboard and of the alerts against a real
//! Prometheus that scrapes the real program.

use std::{
    collections::BTreeSet, fs, net::SocketAddr, path::Path, process::Command, time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use portcullis_scenarios::{
    BrokerClient, BrokerServer, BrokerSettings, Deployment, INITIALIZE, ProviderKind, Request,
    ReservedPort, Scratch, TokenPair,
};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::form_urlencoded;
use xtask::{programs, workspace};

use super::{program::Program, progress::Progress};

/// How long one step may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// The time in which two scrapes and the evaluation of the rules have passed.
const SETTLE: Duration = Duration::from_secs(60);
/// The interval between two attempts.
const POLL: Duration = Duration::from_millis(500);

const ADMIN_TOKEN: &str = "admin-token-of-the-metrics-run-0123456789";
const METRICS_TOKEN: &str = "metrics-token-of-the-metrics-run-0123456789";

/// Runs all queries. Without Prometheus, the run is reported as skipped.
pub(crate) async fn run(folder: &Path, progress: &mut Progress) -> anyhow::Result<()> {
    let Some((prometheus, promtool)) = programs::find("prometheus").zip(programs::find("promtool"))
    else {
        progress.skip(
            "the queries at Prometheus",
            "`prometheus` and `promtool` are not here; Debian has them (`apt-get install prometheus`)",
        );
        return Ok(());
    };
    let repository = workspace::root();
    let ports = [(); 3].map(|()| ReservedPort::new());
    let [admin, admin_of_broker, address] = ports.each_ref().map(ReservedPort::address);
    let token = Scratch::file("metrics-token", METRICS_TOKEN);
    let deployment = progress
        .step(
            "the program starts with metrics",
            start(admin, folder, &token),
        )
        .await?;
    progress
        .step(
            "it serves requests of each decision",
            send_requests(&deployment),
        )
        .await?;
    let _broker = progress
        .step(
            "a broker signs a user in",
            start_broker(admin_of_broker, folder, &token),
        )
        .await?;
    progress
        .step("promtool accepts the metrics and the alerts", async {
            lint(&promtool, admin, folder).await?;
            lint(&promtool, admin_of_broker, folder).await?;
            check_rules(&promtool, &repository)
        })
        .await?;
    let admins = [admin, admin_of_broker];
    let start = start_prometheus(&prometheus, &repository, address, admins, folder, &token);
    let mut running = progress
        .step("Prometheus starts with the alerts", start)
        .await?;
    progress
        .step("it scrapes the program", scraped(address, &deployment))
        .await?;
    progress
        .step(
            "each query of the dashboard has a result",
            dashboard(address, &repository),
        )
        .await?;
    progress
        .step(
            "each alert is evaluated, and none fires",
            alerts(address, &repository),
        )
        .await?;
    running.expect_running()
}

/// Starts the program with a listener for administrators, which serves metrics.
async fn start(admin: SocketAddr, folder: &Path, token: &Scratch) -> anyhow::Result<Deployment> {
    let tables = tables("server", admin, folder, token)?;
    Ok(Deployment::builder().tables(tables).start().await)
}

/// Returns `[audit]` and `[admin]` with this listener, for the server with this name.
fn tables(name: &str, admin: SocketAddr, folder: &Path, token: &Scratch) -> anyhow::Result<String> {
    let admin_token = folder.join("admin-token");
    fs::write(&admin_token, ADMIN_TOKEN)?;
    Ok(format!(
        "[audit]\ntarget = {{ file = {:?} }}\n[admin]\nlisten = \"{admin}\"\ntoken = {{ file = {:?} }}\n\
         metrics_token = {{ file = {:?} }}",
        folder.join(format!("audit-{name}.jsonl")),
        admin_token,
        token.path(),
    ))
}

/// Starts a server with a broker. A user signs in, and the grant ends, so that every metric of
/// brokers has a value.
async fn start_broker(
    admin: SocketAddr,
    folder: &Path,
    token: &Scratch,
) -> anyhow::Result<BrokerServer> {
    let server = BrokerServer::with(BrokerSettings {
        // This is the only one of the run.
        tables: tables("broker", admin, folder, token)?.leak(),
        ..BrokerSettings::of(ProviderKind::Entra)
    })
    .await;
    let client = BrokerClient::register(&server).await;
    let tokens = client.sign_in(&server, "alice").await;
    let refreshed = client.refresh(&server, &tokens.refresh).await;
    let tokens = TokenPair::parse(&refreshed);
    let guessed = client.refresh(&server, "guessed").await;
    ensure!(guessed.status == 400, "a guessed token: {}", guessed.status);
    client.revoke(&server, &tokens.refresh).await;
    Ok(server)
}

/// Opens, uses and ends sessions, and sends requests that are denied, so that every metric has a
/// value.
async fn send_requests(deployment: &Deployment) -> anyhow::Result<()> {
    let token = deployment.good_token();
    for _ in 0..5 {
        let session = deployment.open_session(&token).await;
        let echo = Request::echo(Deployment::ENDPOINT, &token, &session);
        let answer = deployment.send(echo).await;
        ensure!(
            answer.status == 200,
            "a call was answered with {}",
            answer.status
        );
        let delete = Request::delete(Deployment::ENDPOINT, &token, &session);
        deployment.send(delete).await;
    }
    let without_token = deployment
        .send(Request::post(Deployment::ENDPOINT, INITIALIZE))
        .await;
    ensure!(
        without_token.status == 401,
        "a request without a token was answered with {}",
        without_token.status
    );
    let expired = deployment
        .try_token(&deployment.token().expires_in(-600).sign())
        .await;
    ensure!(
        expired.status == 401,
        "an expired token was answered with {}",
        expired.status
    );
    Ok(())
}

/// Checks that the token for scrapes reads only metrics, and that `promtool` accepts them.
async fn lint(promtool: &Path, admin: SocketAddr, folder: &Path) -> anyhow::Result<()> {
    let restricted = Request::new("GET", "/v1/sessions")
        .bearer(METRICS_TOKEN)
        .send(admin)
        .await;
    ensure!(
        restricted.status == 403,
        "the metrics token lists sessions: {}",
        restricted.status
    );
    let answer = Request::new("GET", "/metrics")
        .bearer(METRICS_TOKEN)
        .send(admin)
        .await;
    ensure!(
        answer.status == 200,
        "/metrics answered with {}",
        answer.status
    );
    let file = folder.join("metrics.txt");
    fs::write(&file, answer.text())?;
    let output = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(fs::File::open(&file)?)
        .output()?;
    ensure!(
        output.status.success(),
        "promtool: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Checks the form of the alerts.
fn check_rules(promtool: &Path, repository: &Path) -> anyhow::Result<()> {
    let output = Command::new(promtool)
        .args(["check", "rules"])
        .arg(repository.join("deploy/prometheus/portcullis.rules.yml"))
        .output()?;
    ensure!(
        output.status.success(),
        "promtool: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Starts Prometheus at this address with the rules of this repository.
async fn start_prometheus(
    prometheus: &Path,
    repository: &Path,
    address: SocketAddr,
    admins: [SocketAddr; 2],
    folder: &Path,
    token: &Scratch,
) -> anyhow::Result<Program> {
    let rules = repository.join("deploy/prometheus/portcullis.rules.yml");
    let configuration = format!(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: [{rules:?}]\nscrape_configs:\n  \
         - job_name: portcullis\n    authorization:\n      credentials_file: {:?}\n    static_configs:\n      - targets: {:?}\n",
        token.path(),
        admins.map(|admin| admin.to_string())
    );
    let file = folder.join("prometheus.yml");
    fs::write(&file, configuration)?;
    let mut command = Command::new(prometheus);
    command
        .arg(format!("--config.file={}", file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("prometheus").display()
        ))
        .arg(format!("--web.listen-address={address}"));
    let mut running = Program::start("prometheus", &mut command, folder)?;
    running
        .find_line(|line| line.contains("Server is ready").then_some(()))
        .await?;
    Ok(running)
}

/// Waits until rates can be computed, while requests go on.
async fn scraped(prometheus: SocketAddr, deployment: &Deployment) -> anyhow::Result<()> {
    let deadline = Instant::now() + SETTLE;
    loop {
        send_requests(deployment).await?;
        let rate = query(
            prometheus,
            "sum by (code) (rate(portcullis_requests_total{decision=\"deny\"}[10s])) > 0",
        )
        .await?;
        let ended = query(prometheus, "rate(portcullis_sessions_ended_total[10s]) > 0").await?;
        if rate.len() >= 2 && !ended.is_empty() {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "Prometheus has no rates after {SETTLE:?}: {rate:?}"
        );
        sleep(POLL).await;
    }
}

/// Metrics that exist only after an event that this run does not cause, or with a table that it
/// does not have.
const WITHOUT_RESULT: &[&str] = &[
    "portcullis_certificate_expiry_timestamp_seconds",
    "portcullis_streams_ended_total",
];

/// Checks that each panel of the dashboard has a description, and each query a result, except those
/// of [`WITHOUT_RESULT`].
async fn dashboard(prometheus: SocketAddr, repository: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(repository.join("deploy/grafana/portcullis.json"))?;
    let dashboard: Value = serde_json::from_str(&text).context("the dashboard is not JSON")?;
    let panels = dashboard["panels"]
        .as_array()
        .context("the dashboard has no panels")?;
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let is_described = panel["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty());
        ensure!(is_described, "{} has no description", panel["title"]);
    }
    let mut queries = BTreeSet::new();
    for target in panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
    {
        queries.insert(target["expr"].as_str().context("a target has no query")?);
    }
    ensure!(
        queries.len() > 20,
        "the dashboard has only {} queries",
        queries.len()
    );
    for expression in queries {
        let expression = expression
            .replace("$instance", ".*")
            .replace("$resource", ".*")
            .replace("$__rate_interval", "20s")
            .replace("$__range", "60s");
        ensure!(
            !expression.contains("$__") && !expression.contains("${"),
            "unknown variable in {expression}"
        );
        let result = query(prometheus, &expression).await?;
        let may_be_empty = WITHOUT_RESULT.iter().any(|name| expression.contains(name));
        ensure!(
            may_be_empty || !result.is_empty(),
            "no result: {expression}"
        );
    }
    Ok(())
}

/// Checks that each alert is evaluated, and none fires.
async fn alerts(prometheus: SocketAddr, repository: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(repository.join("deploy/prometheus/portcullis.rules.yml"))?;
    let written = text.matches("- alert: ").count();
    ensure!(written > 0, "the file of the rules has no alert");
    let deadline = Instant::now() + SETTLE;
    let rules = loop {
        let groups = get(prometheus, "/api/v1/rules").await?;
        let rules: Vec<Value> = groups["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default())
            .collect();
        let is_evaluated = |rule: &Value| rule["health"] != "unknown";
        if rules.len() == written && rules.iter().all(is_evaluated) {
            break rules;
        }
        let evaluated = rules.iter().filter(|rule| is_evaluated(rule)).count();
        ensure!(
            Instant::now() < deadline,
            "{evaluated} of {written} alerts are evaluated"
        );
        sleep(POLL).await;
    };
    for rule in rules {
        let name = &rule["name"];
        ensure!(
            rule["health"] == "ok",
            "{name} cannot be evaluated: {}",
            rule["lastError"]
        );
        ensure!(
            rule["state"] != "firing",
            "{name} fires: {}",
            rule["alerts"]
        );
        let expression = rule["query"]
            .as_str()
            .with_context(|| format!("{name} has no query"))?;
        query(prometheus, expression)
            .await
            .with_context(|| format!("alert {name}"))?;
    }
    Ok(())
}

/// Returns the result of an instant query.
async fn query(prometheus: SocketAddr, expression: &str) -> anyhow::Result<Vec<Value>> {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("query", expression)
        .finish();
    let data = get(prometheus, &format!("/api/v1/query?{query}"))
        .await
        .with_context(|| format!("query {expression}"))?;
    data["result"]
        .as_array()
        .cloned()
        .with_context(|| format!("no vector: {expression}"))
}

async fn get(prometheus: SocketAddr, target: &str) -> anyhow::Result<Value> {
    let answer = Request::new("GET", target).send(prometheus).await;
    let mut answer: Value =
        serde_json::from_str(&answer.text()).context("Prometheus did not answer with JSON")?;
    if answer["status"] != "success" {
        bail!("Prometheus: {}", answer["error"]);
    }
    Ok(answer["data"].take())
}
