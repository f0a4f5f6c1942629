//! TLS of the server of a team.

use std::io::Read;
use std::path::PathBuf;

use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::operations::LoggedServer;
use super::{Team, write_file};

/// The files of a certificate that signs itself, for 127.0.0.1.
struct Pair {
    cert: PathBuf,
    key: PathBuf,
}

impl Pair {
    fn new(team: &Team) -> Pair {
        let pair = Pair { cert: team.env.root().join("cert.pem"), key: team.env.root().join("key.pem") };
        pair.renew();
        pair
    }

    /// Replaces the certificate and its key. Returns the certificate.
    fn renew(&self) -> String {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([String::from("127.0.0.1")]).unwrap();
        write_file(&self.cert, cert.pem()).unwrap();
        write_file(&self.key, signing_key.serialize_pem()).unwrap();
        cert.pem()
    }

    fn args(&self) -> [&str; 4] {
        ["--tls-cert", self.cert.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }
}

/// Buys a link over TLS, with a certificate that the client trusts.
fn log_in(team: &Team, logged: &LoggedServer, ca: &str) -> crate::env::Run {
    let (token, trusted) = (team.env.root().join("token"), team.env.root().join("ca.pem"));
    write_file(&token, &team.admin).unwrap();
    write_file(&trusted, ca).unwrap();
    let (token, trusted) = (token.to_str().unwrap(), trusted.to_str().unwrap());
    team.env.run(&["team", "login", "--url", &logged.server.link, "--token-file", token, "--ca", trusted])
}

#[test]
fn tls_pair_is_replaced_on_hangup_and_bad_one_is_not_used() {
    let Some(team) = Team::new() else { return };
    let pair = Pair::new(&team);
    let old = std::fs::read_to_string(&pair.cert).unwrap();
    let logged = LoggedServer::start(&team, "one", &pair.args());
    assert!(logged.server.link.starts_with("https://127.0.0.1:"), "{}", logged.server.link);
    let run = log_in(&team, &logged, &old);
    assert!(
        run.ok && run.stdout.contains(&format!("{}/page/shop/login?ticket=", logged.server.link)),
        "{}",
        run.stderr
    );
    let plain = logged.server.send_with_headers("GET", "/healthz", &[("Host", "team")], "");
    assert_ne!(plain.status, 200, "plain HTTP is not answered");
    // Files that cannot be used: the pair in use stays, and the log says why.
    write_file(&pair.key, "no key").unwrap();
    crate::serve::signal(logged.server.pid(), "HUP");
    let line = logged.wait_for("tls_reload_failed", 1);
    assert!(line["file"].as_str().unwrap().ends_with("key.pem") && line["level"] == "error", "{line}");
    assert!(log_in(&team, &logged, &old).ok);
    let new = pair.renew();
    let key = std::fs::read_to_string(&pair.key).unwrap();
    write_file(&pair.cert, &old).unwrap();
    crate::serve::signal(logged.server.pid(), "HUP");
    logged.wait_for("tls_reload_failed", 2);
    assert!(log_in(&team, &logged, &old).ok, "a key of another certificate is not used");
    write_file(&pair.cert, &new).unwrap();
    crate::serve::signal(logged.server.pid(), "HUP");
    logged.wait_for("tls_reloaded", 1);
    assert!(log_in(&team, &logged, &new).ok);
    let refused = log_in(&team, &logged, &old);
    assert!(!refused.ok && refused.stderr.contains("check --url and --ca"), "{}", refused.stderr);
    assert!(!logged.text().contains(&key) && !logged.text().contains("no key"), "{}", logged.text());
}

#[test]
fn silent_clients_are_closed_and_do_not_stop_others() {
    let Some(team) = Team::new() else { return };
    let pair = Pair::new(&team);
    let ca = std::fs::read_to_string(&pair.cert).unwrap();
    let logged = LoggedServer::start(&team, "one", &pair.args());
    let mut silent: Vec<_> = (0..200).map(|_| logged.server.connect()).collect();
    assert!(log_in(&team, &logged, &ca).ok);
    for stream in &mut silent {
        // The connection ends, although the client sent nothing.
        let read = stream.read(&mut [0; 64]).map_err(|error| error.kind());
        assert!(matches!(read, Ok(0) | Err(std::io::ErrorKind::ConnectionReset)), "{read:?}");
    }
}

#[test]
fn serve_without_usable_tls_names_options_and_file() {
    let Some(team) = Team::new() else { return };
    let serve = |args: &[&str]| {
        let output = team
            .env
            .command(&["serve", "--listen"])
            .args(args)
            .env("TANMI_DATABASE_URL", team.cluster.address())
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let plain = serve(&["0.0.0.0:0"]);
    assert!(plain.contains("--tls-cert") && plain.contains("--tls-key"), "{plain}");
    assert!(serve(&["[::]:0"]).contains("--tls-cert"));
    let pair = Pair::new(&team);
    let [_, cert, _, key] = pair.args();
    let half = serve(&["0.0.0.0:0", "--tls-cert", cert]);
    assert!(half.contains("--tls-key"), "{half}");
    let missing = serve(&["0.0.0.0:0", "--tls-cert", "/none.pem", "--tls-key", key]);
    assert!(missing.contains("/none.pem"), "{missing}");
    let swapped = serve(&["0.0.0.0:0", "--tls-cert", key, "--tls-key", cert]);
    assert!(swapped.contains("key.pem") && !swapped.contains("PRIVATE"), "{swapped}");
}
