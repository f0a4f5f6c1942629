//! The single server of a home store: its lock, its address in `serve.json`, and how a second `tanmi serve` requests a
//! link from the running one.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tanmi_base::lock::Lock;
use tanmi_base::{Millis, fs};

const OPENER_FILE: &str = "serve.html";

/// The lock of the running server. The operating system releases it when the process ends, even if it is killed.
pub struct InstanceLock {
    path: PathBuf,
    now: Millis,
    info: Option<ServeInfo>,
    _lock: Lock,
}

/// The content of `serve.json`. Only the owner may read the file, because it contains the token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeInfo {
    pub url: String,
    pub port: u16,
    pub pid: u32,
    /// The token that programs send as `Authorization: Bearer …`.
    pub token: String,
    pub project: String,
    pub started_at: Millis,
}

/// The result of acquiring the lock.
pub enum AcquireOutcome {
    Acquired(InstanceLock),
    /// Another server is running.
    Running(ServeInfo),
    /// Another server holds the lock and has not written its address yet.
    Starting,
}

impl InstanceLock {
    pub fn acquire(home: &Path, now: Millis) -> io::Result<AcquireOutcome> {
        fs::create_private_dir(home)?;
        let path = home.join("serve.json");
        match Lock::try_exclusive(&home.join("serve.lock"))? {
            Some(lock) => {
                // A killed server may have left its file; it would be wrong until this server writes its own.
                let _ = std::fs::remove_file(&path);
                Ok(AcquireOutcome::Acquired(InstanceLock { path, now, info: None, _lock: lock }))
            }
            None => Ok(read(&path).map_or(AcquireOutcome::Starting, AcquireOutcome::Running)),
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

    /// Removes the files with the address and releases the lock.
    pub(super) fn release(self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(self.path.with_file_name(OPENER_FILE));
    }
}

/// Writes a private file that redirects a browser to the link, and returns its path. A link on the command line of the
/// browser could be read, and used first, by any user of the machine.
pub fn write_opener(home: &Path, link: &str) -> io::Result<PathBuf> {
    let path = home.join(OPENER_FILE);
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
    /// Requests a link from the running server and adds the project to its projects. `None` if the server does not
    /// respond.
    pub fn request_link(&self, project: &Path) -> Option<String> {
        let body = serde_json::json!({"project": project.display().to_string()}).to_string();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let timeout = Duration::from_secs(5);
        let mut stream = TcpStream::connect_timeout(&address, timeout).ok()?;
        stream.set_read_timeout(Some(timeout)).ok()?;
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
