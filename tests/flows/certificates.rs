//! Certificates of the server that expire, and rejected reloads, in the metrics and in `check`.

use portcullis_scenarios::{Administration, Portcullis, Scratch, Signal};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::Value;

/// The end of a certificate's validity: the first day of a year, and its Unix time.
struct Expiry {
    year: i32,
    timestamp: &'static str,
}

const EXPIRED: Expiry = Expiry {
    year: 2021,
    timestamp: "1609459200",
};
const VALID: Expiry = Expiry {
    year: 2090,
    timestamp: "3786912000",
};

/// The files of a certificate for localhost that is valid until the first day of a year.
struct Certificate {
    certificates: Scratch,
    key: Scratch,
}

impl Certificate {
    fn until(year: i32) -> Self {
        let certificate = Self {
            certificates: Scratch::path_for("cert.pem"),
            key: Scratch::path_for("key.pem"),
        };
        certificate.renew(year);
        certificate
    }

    /// Replaces the files.
    fn renew(&self, year: i32) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(year, 1, 1));
        std::fs::write(
            self.certificates.path(),
            params.self_signed(&key).unwrap().pem(),
        )
        .unwrap();
        std::fs::write(self.key.path(), key.serialize_pem()).unwrap();
    }

    fn configuration(&self, tables: &str) -> String {
        format!(
            "listen = \"127.0.0.1:0\"\nbase_url = \"https://localhost\"\n[tls]\ncertificates = \"{}\"\nkey = \"{}\"\n\
             [[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\nauth = \"none\"\n{tables}",
            self.certificates.as_str(),
            self.key.as_str()
        )
    }
}

/// F8, J9: `check` names an expired certificate with its file, its date and the fix, and with
/// --online it is the first cause.
#[tokio::test]
async fn check_names_an_expired_certificate() {
    let certificate = Certificate::until(EXPIRED.year);
    let file = Scratch::file("portcullis.toml", &certificate.configuration(""));
    let finished = Portcullis::run(&["check", "--config", file.as_str()]).await;
    let expected = format!(
        "tls.certificates = {} expired on 2021-01-01T00:00:00Z, so that clients reject it; renew it",
        certificate.certificates.as_str()
    );
    let warning = finished
        .stdout
        .lines()
        .find(|line| line.starts_with("warning:"))
        .unwrap_or_default();
    assert!(warning.contains(&expected), "{finished:?}");
    assert!(warning.contains("portcullis.toml:4: "), "{finished:?}");

    let online = Portcullis::run(&["check", "--online", "--json", "--config", file.as_str()]).await;
    let report: Value = serde_json::from_str(&online.stdout).unwrap();
    let cause = &report["online"]["first_cause"];
    assert_eq!(online.code, Some(1), "{report:#}");
    assert_eq!(cause["rule"]["id"], "tls.certificate", "{report:#}");

    certificate.renew(VALID.year);
    let finished = Portcullis::run(&["check", "--online", "--config", file.as_str()]).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished
            .stdout
            .contains("it is valid until 2090-01-01T00:00:00Z"),
        "{finished:?}"
    );
    assert!(!finished.stdout.contains("expire"), "{finished:?}");
}

/// F8, J7, J10: the metrics have the expiry of the certificate in use, the number of tasks, and
/// rejected reloads.
#[tokio::test]
async fn the_metrics_show_the_certificate_and_reloads() {
    let certificate = Certificate::until(EXPIRED.year);
    let administration = Administration::default();
    let configuration = certificate.configuration(&administration.table());
    let file = Scratch::file("portcullis.toml", &configuration);
    let portcullis = Portcullis::start(&["serve", "--config", file.as_str()]).await;
    let samples = |expiry: &str, accepted: u8, rejected: u8| {
        [
            format!("portcullis_certificate_expiry_timestamp_seconds{{table=\"tls\"}} {expiry}"),
            format!("portcullis_reloads_total{{result=\"accepted\"}} {accepted}"),
            format!("portcullis_reloads_total{{result=\"rejected\"}} {rejected}"),
        ]
    };
    let assert_samples = async |samples: [String; 3], successful: bool| {
        let text = administration.metrics(Administration::TOKEN).await;
        let successful = format!("portcullis_last_reload_successful {}", u8::from(successful));
        for sample in samples.iter().chain([&successful]) {
            assert!(text.contains(&format!("\n{sample}\n")), "{sample}: {text}");
        }
        let tasks = text
            .lines()
            .find_map(|line| line.strip_prefix("portcullis_tasks ")?.parse::<u32>().ok());
        assert!(tasks.is_some_and(|tasks| tasks > 3), "{text}");
    };
    portcullis
        .logged("expired on 2021-01-01T00:00:00Z", |line| {
            line["level"] == "WARN"
        })
        .await;
    assert_samples(samples(EXPIRED.timestamp, 0, 0), true).await;

    std::fs::write(file.path(), configuration.replace("endpoint", "endpoints")).unwrap();
    certificate.renew(VALID.year);
    portcullis.signal(Signal::HUP);
    portcullis
        .logged("config.reload", |line| {
            line["config.reload"] == 1 && line.get("config.reasons").is_some()
        })
        .await;
    assert_samples(samples(VALID.timestamp, 0, 1), false).await;

    std::fs::write(file.path(), &configuration).unwrap();
    portcullis.signal(Signal::HUP);
    portcullis
        .logged("config.reload", |line| line["config.reload"] == 2)
        .await;
    assert_samples(samples(VALID.timestamp, 1, 1), true).await;
}
