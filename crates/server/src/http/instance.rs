//! One server for one home: who holds it, where it is, and how a second one asks the first for a link.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, fs};

const OPENER: &str = "serve.html";

/// Held as long as the server runs; the kernel frees it with the process, however that ends.
pub struct InstanceLock {
    path: PathBuf,
    now: Millis,
    info: Option<ServeInfo>,
    _lock: Lock,
}

/// `serve.json`, which only its owner may read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeInfo {
    pub url: String,
    pub port: u16,
    pub pid: u32,
    /// What programs send as `Authorization: Bearer …`.
    pub token: String,
    pub project: String,
    pub started_at: Millis,
}

/// The lease, or where the server is that has it.
pub enum AcquireOutcome {
    Ours(InstanceLock),
    Theirs(ServeInfo),
    /// Somebody has it and has not said yet where.
    Starting,
}

impl InstanceLock {
    pub fn take(home: &Path, now: Millis) -> io::Result<AcquireOutcome> {
        fs::create_private_dir(home)?;
        let path = home.join("serve.json");
        match Lock::try_exclusive(&home.join("serve.lock"))? {
            Some(lock) => {
                // What a killed one left must not be taken for ours before we are there.
                let _ = std::fs::remove_file(&path);
                Ok(AcquireOutcome::Ours(InstanceLock { path, now, info: None, _lock: lock }))
            }
            None => Ok(read(&path).map_or(AcquireOutcome::Starting, AcquireOutcome::Theirs)),
        }
    }

    pub fn info(&self) -> Option<&ServeInfo> {
        self.info.as_ref()
    }

    pub(super) fn write(&mut self, port: u16, token: &str, project: &Path) -> io::Result<()> {
        let info = ServeInfo {
            url: format!("http://127.0.0.1:{port}"),
            port,
            pid: std::process::id(),
            token: token.to_owned(),
            project: project.display().to_string(),
            started_at: self.now,
        };
        fs::write_private(&self.path, serde_json::to_string_pretty(&info)?.as_bytes())?;
        self.info = Some(info);
        Ok(())
    }

    /// Nobody is to be sent to a place where nobody is.
    pub(super) fn end(self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(self.path.with_file_name(OPENER));
    }
}

/// A file for a browser to open, which leads to the link. A link on the browser's command line could be read, and used
/// first, by every user of the machine.
pub fn opener(home: &Path, link: &str) -> io::Result<PathBuf> {
    let path = home.join(OPENER);
    let text = format!(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url={link}\"><title>Tanmi</title>\
         <a href=\"{link}\">Tanmi</a>"
    );
    fs::write_private(&path, text.as_bytes())?;
    Ok(path)
}

fn read(path: &Path) -> Option<ServeInfo> {
    serde_json::from_slice(&fs::read_limited(path, 64 << 10).ok()??).ok()
}

impl ServeInfo {
    /// A new link to the running server, which learns of this project. `None` if it does not answer.
    pub fn link(&self, project: &Path) -> Option<String> {
        let body = serde_json::json!({"project": project.display().to_string()}).to_string();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let patience = Duration::from_secs(5);
        let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
        stream.set_read_timeout(Some(patience)).ok()?;
        let (port, token, length) = (self.port, &self.token, body.len());
        let request = format!(
            "POST /api/v1/tickets HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.take(64 << 10).read_to_string(&mut response).ok()?;
        let (_, body) = response.split_once("\r\n\r\n")?;
        let answer: serde_json::Value = serde_json::from_str(body).ok()?;
        Some(answer.get("link")?.as_str()?.to_owned())
    }
}
