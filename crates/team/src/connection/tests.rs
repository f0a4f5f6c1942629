//! Lost answers and servers that are away, with a scripted server on the loopback interface.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;

const NOW: Millis = 1_765_432_100_000;

/// What the server does with a request.
#[derive(Clone, Copy)]
enum Step {
    Answer,
    /// Ends the connection without an answer.
    Cut,
    Status(u16),
    /// Answers after this many seconds.
    Late(u64),
}

/// Starts a server that takes one step for each request, and answers after the last one. Returns its address and the
/// bodies that it got.
fn serve(steps: &[Step]) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let (steps, seen) = (steps.to_vec(), Arc::clone(&bodies));
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let step = steps.get(n).copied().unwrap_or(Step::Answer);
            let mut stream = stream.unwrap();
            seen.lock().unwrap().push(read_body(&mut stream));
            let (status, body) = match step {
                Step::Cut => continue,
                Step::Answer => (200, json!({"leaseUntil": 0, "lost": [], "heads": {}, "now": NOW})),
                Step::Late(seconds) => {
                    std::thread::sleep(Duration::from_secs(seconds));
                    (200, json!({"added": 1, "known": 0}))
                }
                Step::Status(status) => (status, json!({"error": {"code": "X", "message": "not now"}})),
            };
            let body = body.to_string();
            let head =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (address, bodies)
}

fn read_body(stream: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part).unwrap();
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length =
                length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return serde_json::from_str(body).unwrap_or_default();
            }
        }
        assert!(count > 0, "the request is not complete");
    }
}

fn connect(server: &str, folder: &Path) -> Connection {
    let member = Member {
        server: server.to_owned(),
        project: String::from("shop"),
        person: String::from("ada"),
        machine: String::from("laptop"),
        token: String::from("tnm_x"),
        ca: None,
        folders: Vec::new(),
        joined_at: 0,
        other: Default::default(),
    };
    Connection::new(&member, folder, || NOW)
}

/// Sends a command and returns its outcome. The body is that of a sign of life, with a key.
fn send(connection: &Connection, text: &str) -> Result<(), ClientError> {
    let with_key = |key: String| vec![key, text.to_owned()];
    connection.command(
        |key| json!({"key": key, "words": with_key(String::new())}),
        |client, body| {
            let sessions = vec![body["key"].as_str().unwrap().to_owned(), text.to_owned()];
            client.beat(&sessions).map(|_| ())
        },
    )
}

fn keys(bodies: &Mutex<Vec<Value>>) -> Vec<String> {
    bodies.lock().unwrap().iter().map(|body| body["sessions"][0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn command_with_lost_answer_is_sent_again_with_same_key() {
    for lost in [Step::Cut, Step::Status(503)] {
        let temp = tempfile::tempdir().unwrap();
        let (server, bodies) = serve(&[lost]);
        send(&connect(&server, temp.path()), "a").unwrap();
        let keys = keys(&bodies);
        assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    }
}

#[test]
fn command_lost_twice_has_unknown_outcome_and_keeps_its_key_for_repetition() {
    let temp = tempfile::tempdir().unwrap();
    let (server, bodies) = serve(&[Step::Cut, Step::Cut]);
    let connection = connect(&server, temp.path());
    let lost = send(&connection, "a").unwrap_err();
    assert!(matches!(lost, ClientError::Unreachable { outcome: LostOutcome::Unknown, .. }), "{lost:?}");
    // Another process repeats it; another command has a key of its own.
    let other = connect(&server, temp.path());
    send(&other, "b").unwrap();
    send(&other, "a").unwrap();
    send(&other, "a").unwrap();
    let keys = keys(&bodies);
    assert_eq!(keys[0], keys[3], "the repetition");
    assert!(keys[2] != keys[0] && keys[4] != keys[0], "{keys:?}");
}

#[test]
fn command_refused_or_limited_is_not_sent_again() {
    for (status, outcome) in [(409, None), (429, Some(LostOutcome::NotRun))] {
        let temp = tempfile::tempdir().unwrap();
        let (server, bodies) = serve(&[Step::Status(status)]);
        match send(&connect(&server, temp.path()), "a").unwrap_err() {
            ClientError::Unreachable { outcome: found, .. } => assert_eq!(Some(found), outcome),
            ClientError::Refused { .. } => assert_eq!(None, outcome),
        }
        assert_eq!(keys(&bodies).len(), 1, "{status}");
    }
}

#[test]
fn connection_never_made_changes_nothing_and_pauses_all_processes() {
    let temp = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = connect(&format!("http://{free}"), temp.path());
    let failed = send(&away, "a").unwrap_err();
    assert!(matches!(failed, ClientError::Unreachable { outcome: LostOutcome::NotSent, .. }), "{failed:?}");
    let (server, bodies) = serve(&[]);
    let other = connect(&server, temp.path());
    let paused = send(&other, "a").unwrap_err().to_string();
    assert!(paused.contains("next attempt"), "{paused}");
    assert!(keys(&bodies).is_empty(), "no attempt in the pause");
    other.end_pause();
    send(&other, "a").unwrap();
    assert_eq!(other.state().failed_at, None);
    assert_eq!(other.state().contact_at, Some(NOW));
}

#[test]
fn poll_that_is_answered_ends_pause_of_other_calls() {
    let temp = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    send(&connect(&format!("http://{free}"), temp.path()), "a").unwrap_err();
    let (server, _) = serve(&[]);
    let connection = connect(&server, temp.path());
    assert!(send(&connection, "a").unwrap_err().to_string().contains("next attempt"));
    connection.poll(|client| client.beat(&[String::from("s")])).unwrap();
    send(&connection, "a").unwrap();
}

#[test]
fn import_that_takes_longer_than_a_command_may_is_answered() {
    let temp = tempfile::tempdir().unwrap();
    let (server, bodies) = serve(&[Step::Late(7), Step::Late(7)]);
    let answer = connect(&server, temp.path()).client.import(&tanmi_protocol::ImportRequest::default());
    assert_eq!(answer.unwrap().added, 1);
    assert_eq!(bodies.lock().unwrap().len(), 1, "sent once");
}
