//! A TCP proxy that disturbs connections: it refuses, delays and cuts them, also after a request was sent.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::rng::Rng;

/// What happens to one connection.
#[derive(Clone, Copy)]
enum Fault {
    None,
    Refuse,
    /// Waits this many milliseconds before the first bytes of the request are passed on.
    DelayRequest(u64),
    DelayResponse(u64),
    /// Closes both sides this many milliseconds after the request was passed on.
    CutAfterRequest(u64),
    /// Closes both sides after this many bytes of the response.
    CutResponse(usize),
}

impl Fault {
    /// Returns a random fault. Two thirds of the connections have none.
    fn choose(rng: &mut Rng) -> Fault {
        match rng.below(24) {
            0 => Fault::Refuse,
            1 | 2 => Fault::DelayRequest(rng.below(60)),
            3 => Fault::DelayResponse(rng.below(60)),
            4 | 5 => Fault::CutAfterRequest(rng.below(4)),
            6 => Fault::CutAfterRequest(rng.below(80)),
            7 => Fault::CutResponse(rng.below(400) as usize),
            _ => Fault::None,
        }
    }
}

/// A listener in front of one server.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: u16,
    has_faults: AtomicBool,
    is_away: AtomicBool,
    cuts: AtomicU64,
    rng: Mutex<Rng>,
}

impl Proxy {
    /// Starts a proxy in front of a port of this machine. It runs until the process ends.
    pub fn start(target: u16, seed: u64) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            target,
            has_faults: AtomicBool::new(true),
            is_away: AtomicBool::new(false),
            cuts: AtomicU64::new(0),
            rng: Mutex::new(Rng(seed)),
        });
        let for_connections = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&for_connections);
                thread::spawn(move || shared.pass_on(client));
            }
        });
        Ok(Proxy { port, shared })
    }

    /// Disturbs new connections again.
    pub fn start_faults(&self) {
        self.shared.has_faults.store(true, Ordering::Relaxed);
    }

    /// Lets no connection through, and no more data through those that exist, or lets them through again.
    pub fn set_away(&self, is_away: bool) {
        self.shared.is_away.store(is_away, Ordering::Relaxed);
    }

    /// Passes new connections on without faults.
    pub fn stop_faults(&self) {
        self.shared.has_faults.store(false, Ordering::Relaxed);
    }

    /// Returns the number of connections that were refused or cut.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Passes one connection on until a side closes it. An error closes both sides.
    fn pass_on(&self, client: TcpStream) {
        let fault = match self.has_faults.load(Ordering::Relaxed) {
            true => Fault::choose(&mut self.rng.lock().expect("no connection panicked")),
            false => Fault::None,
        };
        if matches!(fault, Fault::Refuse) || self.is_away.load(Ordering::Relaxed) {
            self.cuts.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target)) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = self.copy_request(&client, &server, fault);
                close(&client, &server);
            });
            let _ = self.copy_response(&server, &client, fault);
            close(&client, &server);
        });
    }

    fn copy_request(&self, mut from: &TcpStream, mut to: &TcpStream, fault: Fault) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 || self.is_away.load(Ordering::Relaxed) {
                return Ok(());
            }
            if let Fault::DelayRequest(time) = fault {
                thread::sleep(Duration::from_millis(time));
            }
            to.write_all(&buffer[..count])?;
            if let Fault::CutAfterRequest(time) = fault {
                thread::sleep(Duration::from_millis(time));
                self.cuts.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        }
    }

    fn copy_response(&self, mut from: &TcpStream, mut to: &TcpStream, fault: Fault) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut passed = 0;
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 || self.is_away.load(Ordering::Relaxed) {
                return Ok(());
            }
            if let Fault::DelayResponse(time) = fault {
                thread::sleep(Duration::from_millis(time));
            }
            match fault {
                Fault::CutResponse(limit) if passed + count > limit => {
                    to.write_all(&buffer[..limit - passed])?;
                    self.cuts.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                _ => to.write_all(&buffer[..count])?,
            }
            passed += count;
        }
    }
}

fn close(client: &TcpStream, server: &TcpStream) {
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}
