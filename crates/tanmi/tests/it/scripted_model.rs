//! A scripted model on the loopback interface that implements the APIs which clients use: Anthropic messages, OpenAI
//! responses and chat completions, and Gemini generateContent. The prompt contains the steps, one per request:
//!
//! ```text
//! [[tool NAME {json}]]   call the tool whose name ends with NAME; `"$workspace"` is the first workspace id in the request
//! [[agent PROMPT]]       start a subagent
//! ```
//!
//! The model answers `DONE` after the last step. The next step follows from the conversation in the request,
//! so the model keeps no state between requests. Every request is recorded.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A running scripted model.
pub struct Model {
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone)]
struct Request {
    wire: Wire,
    body: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Messages,
    Responses,
    Chat,
    Gemini,
}

/// One entry of a conversation, independent of the wire format.
enum Entry {
    /// A text of the user, the client or a hook.
    Text(String),
    /// A tool call of the model.
    Call(String),
    /// The result of a tool.
    ToolResult(String),
}

enum Step {
    Tool(String, Value),
    Agent(String),
    /// Wait for a subagent, in clients that run subagents in the background.
    Wait,
    Done,
}

impl Model {
    pub fn start() -> Model {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let recorded = recorded.clone();
                std::thread::spawn(move || serve(stream, &recorded));
            }
        });
        Model { port, requests }
    }

    /// Returns the text of each request that offered tools, without tool calls.
    pub fn request_texts(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap().clone();
        requests
            .iter()
            .filter(|request| !tools(request).is_empty())
            .map(|request| {
                let entries = conversation(request).into_iter().filter_map(|entry| match entry {
                    Entry::Text(text) | Entry::ToolResult(text) => Some(text),
                    Entry::Call(_) => None,
                });
                let system = texts(&request.body["system"]).join("\n");
                format!("{system}\n{}", entries.collect::<Vec<_>>().join("\n"))
            })
            .collect()
    }

    pub fn clear_requests(&self) {
        self.requests.lock().unwrap().clear();
    }
}

fn serve(stream: TcpStream, recorded: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut parts = line.split_whitespace().map(String::from);
        let (method, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let body = read_body(&mut reader);
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let wire = match path.as_str() {
            path if path.ends_with("/messages") => Some(Wire::Messages),
            path if path.ends_with("/responses") => Some(Wire::Responses),
            path if path.ends_with("/chat/completions") => Some(Wire::Chat),
            path if path.contains("enerateContent") => Some(Wire::Gemini),
            _ => None,
        };
        let (Some(wire), "POST") = (wire, method.as_str()) else {
            send(&mut stream, "application/json", &other_response(&path).to_string());
            continue;
        };
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let request = Request { wire, body };
        let step = next_step(&request);
        recorded.lock().unwrap().push(request.clone());
        let streams = path.contains("stream") || request.body["stream"] == true;
        let (kind, text) = answer(&request, &step, streams);
        send(&mut stream, kind, &text);
    }
}

fn read_body(reader: &mut impl BufRead) -> Vec<u8> {
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => is_chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if !is_chunked {
        let _ = reader.read_exact(&mut body);
        return body;
    }
    loop {
        let mut line = String::new();
        let _ = reader.read_line(&mut line);
        let size = usize::from_str_radix(line.trim().split(';').next().unwrap_or("0"), 16).unwrap_or(0);
        let mut chunk = vec![0; size];
        let _ = reader.read_exact(&mut chunk);
        body.extend(chunk);
        let _ = reader.read_line(&mut line);
        if size == 0 {
            return body;
        }
    }
}

fn send(stream: &mut TcpStream, kind: &str, body: &str) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

/// Returns the response to requests other than generation: model lists, token counts and anything else.
fn other_response(path: &str) -> Value {
    match path {
        path if path.contains("count_tokens") => json!({"input_tokens": 100}),
        path if path.contains("countTokens") => json!({"totalTokens": 100}),
        path if path.contains("models") => {
            json!({"object": "list", "data": [{"id": "scripted", "object": "model", "type": "model"}], "models": []})
        }
        _ => json!({}),
    }
}

/// Returns all texts inside a value, in order.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => {
            let keys = ["text", "content", "output", "parts", "response"];
            keys.iter().filter_map(|key| fields.get(*key)).flat_map(texts).collect()
        }
        _ => Vec::new(),
    }
}

fn joined(value: &Value) -> String {
    texts(value).join("\n")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn name(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn conversation(request: &Request) -> Vec<Entry> {
    let body = &request.body;
    let mut entries = Vec::new();
    match request.wire {
        Wire::Messages => {
            for message in list(&body["messages"]) {
                for block in list(&message["content"]) {
                    entries.push(match block["type"].as_str() {
                        Some("tool_use") => Entry::Call(name(&block["name"])),
                        Some("tool_result") => Entry::ToolResult(joined(&block["content"])),
                        _ => Entry::Text(joined(block)),
                    });
                }
                entries.extend(message["content"].as_str().map(|text| Entry::Text(text.to_owned())));
            }
        }
        Wire::Responses => {
            entries.extend(list(&body["input"]).iter().map(|item| match item["type"].as_str() {
                Some("function_call") => Entry::Call(name(&item["name"])),
                Some("function_call_output") => Entry::ToolResult(joined(&item["output"])),
                _ => Entry::Text(joined(&item["content"])),
            }));
        }
        Wire::Chat => {
            for message in list(&body["messages"]) {
                entries.push(match message["role"].as_str() {
                    Some("tool") => Entry::ToolResult(joined(&message["content"])),
                    _ => Entry::Text(joined(&message["content"])),
                });
                let calls = list(&message["tool_calls"]).iter();
                entries.extend(calls.map(|call| Entry::Call(name(&call["function"]["name"]))));
            }
        }
        Wire::Gemini => {
            for part in list(&body["contents"]).iter().flat_map(|content| list(&content["parts"])) {
                entries.push(match part {
                    part if part.get("functionCall").is_some() => {
                        Entry::Call(name(&part["functionCall"]["name"]))
                    }
                    part if part.get("functionResponse").is_some() => {
                        Entry::ToolResult(part["functionResponse"]["response"].to_string())
                    }
                    part => Entry::Text(joined(part)),
                });
            }
        }
    }
    entries
}

/// Returns the names of the tools that the client offers; tools of a namespace as `group|tool`.
fn tools(request: &Request) -> Vec<String> {
    let listed = list(&request.body["tools"]).iter();
    match request.wire {
        Wire::Chat => listed.map(|tool| name(&tool["function"]["name"])).collect(),
        Wire::Gemini => listed
            .flat_map(|tool| list(&tool["functionDeclarations"]))
            .map(|tool| name(&tool["name"]))
            .collect(),
        _ => listed
            .flat_map(|tool| match tool["type"].as_str() {
                Some("namespace") => {
                    let group = name(&tool["name"]);
                    list(&tool["tools"])
                        .iter()
                        .map(|tool| format!("{group}|{}", name(&tool["name"])))
                        .collect()
                }
                _ => vec![name(&tool["name"])],
            })
            .collect(),
    }
}

/// Parses the steps of a prompt.
fn parse_steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("[[") {
        rest = &rest[start + 2..];
        let Some(end) = rest.find("]]") else { break };
        let step = &rest[..end];
        if let Some(prompt) = step.strip_prefix("agent ") {
            steps.push(Step::Agent(prompt.to_owned()));
            steps.push(Step::Wait);
        } else if let Some((tool, input)) = step.strip_prefix("tool ").and_then(|step| step.split_once(' ')) {
            steps.push(Step::Tool(tool.to_owned(), serde_json::from_str(input).unwrap()));
        }
        rest = &rest[end..];
    }
    steps
}

/// Returns the first step of the latest prompt with steps that the conversation does not contain yet.
fn next_step(request: &Request) -> Step {
    let offered = tools(request);
    if offered.is_empty() {
        return Step::Done;
    }
    let entries = conversation(request);
    let has_steps = |entry: &Entry| matches!(entry, Entry::Text(text) if !parse_steps(text).is_empty());
    let Some(at) = entries.iter().rposition(has_steps) else { return Step::Done };
    let Entry::Text(prompt) = &entries[at] else { return Step::Done };
    let waits = offered.iter().any(|tool| tool.ends_with("wait_agent"));
    let done = entries[at..]
        .iter()
        .filter(|entry| matches!(entry, Entry::Call(name) if name != "ToolSearch"))
        .count();
    let steps = parse_steps(prompt).into_iter().filter(|step| waits || !matches!(step, Step::Wait));
    steps.into_iter().nth(done).unwrap_or(Step::Done)
}

/// Returns the tool call for a step: the tool's name as the client offers it, and its input.
fn call(request: &Request, step: &Step) -> Option<(String, Value)> {
    let offered = tools(request);
    let find = |wanted: &str| {
        let has_name = |tool: &&String| {
            tool.strip_suffix(wanted).is_some_and(|head| head.is_empty() || head.ends_with(['_', '-', '|']))
        };
        offered.iter().find(has_name).cloned()
    };
    match step {
        Step::Done => None,
        Step::Tool(tool, input) => Some(match find(tool) {
            Some(name) => (name, with_workspace(input, request)),
            // The client has only named this tool; `ToolSearch` loads its schema.
            None => {
                let tail = format!("__{tool}");
                let entries = conversation(request);
                let texts = entries.iter().filter_map(|entry| match entry {
                    Entry::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                let name = texts.flat_map(str::split_whitespace).find(|word| word.ends_with(&tail));
                let name = name.unwrap_or(tool);
                ("ToolSearch".to_owned(), json!({"query": format!("select:{name}"), "max_results": 5}))
            }
        }),
        Step::Wait => {
            let entries = conversation(request);
            let ids = entries.iter().rev().filter_map(|entry| match entry {
                Entry::ToolResult(text) => {
                    serde_json::from_str::<Value>(text).ok()?["agent_id"].as_str().map(String::from)
                }
                _ => None,
            });
            Some((
                find("wait_agent")?,
                json!({"targets": ids.take(1).collect::<Vec<_>>(), "timeout_ms": 20000}),
            ))
        }
        Step::Agent(prompt) => {
            let general = json!({"description": "sub", "prompt": prompt, "subagent_type": "general-purpose"});
            let calls = [
                ("Agent", general),
                ("spawn_agent", json!({"message": prompt})),
                ("invoke_agent", json!({"agent_name": "generalist", "prompt": prompt})),
                (
                    "task",
                    json!({"description": "sub", "prompt": prompt, "agent_type": "general-purpose", "name": "sub", "mode": "sync"}),
                ),
            ];
            calls.into_iter().find_map(|(tool, input)| Some((find(tool)?, input)))
        }
    }
}

/// Replaces `"$workspace"` in the input of a tool with the first workspace id that the model was told.
fn with_workspace(input: &Value, request: &Request) -> Value {
    let texts: Vec<String> = conversation(request)
        .into_iter()
        .filter_map(|entry| if let Entry::Text(text) = entry { Some(text) } else { None })
        .collect();
    let mut words = texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '-'));
    let id = words.find(|word| word.starts_with("ws-")).unwrap_or("none");
    serde_json::from_str(&input.to_string().replace("$workspace", id)).unwrap()
}

fn answer(request: &Request, step: &Step, streams: bool) -> (&'static str, String) {
    let call = call(request, step);
    let model = request.body["model"].clone();
    match request.wire {
        Wire::Messages => messages(&model, call, streams),
        Wire::Responses => responses(call),
        Wire::Chat => chat(&model, call, streams),
        Wire::Gemini => gemini(request, call, streams),
    }
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

fn events(events: &[Value]) -> String {
    let one = |event: &Value| match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(one).collect()
}

fn messages(model: &Value, call: Option<(String, Value)>, streams: bool) -> (&'static str, String) {
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    let (block, reason) = match &call {
        None => (json!({"type": "text", "text": "DONE"}), "end_turn"),
        Some((tool, input)) => {
            (json!({"type": "tool_use", "id": unique_id("toolu"), "name": tool, "input": input}), "tool_use")
        }
    };
    let mut message = json!({"id": unique_id("msg"), "type": "message", "role": "assistant", "model": model, "content": [block], "stop_reason": reason, "stop_sequence": null, "usage": usage});
    if !streams {
        return (JSON, message.to_string());
    }
    let (start, delta) = match &call {
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "DONE"})),
        Some((tool, input)) => (
            json!({"type": "tool_use", "id": block["id"], "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
        ),
    };
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let stream = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ];
    (EVENTS, events(&stream))
}

fn responses(call: Option<(String, Value)>) -> (&'static str, String) {
    let item = match &call {
        None => {
            json!({"type": "message", "role": "assistant", "id": unique_id("msg"), "content": [{"type": "output_text", "text": "DONE", "annotations": []}]})
        }
        Some((tool, input)) => {
            let (group, tool) =
                tool.split_once('|').map_or((None, tool.as_str()), |(group, tool)| (Some(group), tool));
            let mut item = json!({"type": "function_call", "id": unique_id("fc"), "call_id": unique_id("call"), "name": tool, "arguments": input.to_string()});
            if let Some(group) = group {
                item["namespace"] = group.into();
            }
            item
        }
    };
    let id = unique_id("resp");
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110});
    let stream = [
        json!({"type": "response.created", "response": {"id": id, "object": "response", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "object": "response", "status": "completed", "output": [item], "usage": usage}}),
    ];
    (EVENTS, events(&stream))
}

fn chat(model: &Value, call: Option<(String, Value)>, streams: bool) -> (&'static str, String) {
    let id = unique_id("chatcmpl");
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    let (message, reason) = match &call {
        None => (json!({"role": "assistant", "content": "DONE"}), "stop"),
        Some((tool, input)) => {
            let function = json!({"name": tool, "arguments": input.to_string()});
            let call = json!({"index": 0, "id": unique_id("call"), "type": "function", "function": function});
            (json!({"role": "assistant", "content": "", "tool_calls": [call]}), "tool_calls")
        }
    };
    if !streams {
        let body = json!({"id": id, "object": "chat.completion", "created": 1, "model": model, "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage});
        return (JSON, body.to_string());
    }
    let chunk = |choices: Value| json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices});
    let mut last = chunk(json!([]));
    last["usage"] = usage;
    let stream = [
        chunk(json!([{"index": 0, "delta": message, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}])),
        last,
    ];
    (EVENTS, format!("{}data: [DONE]\n\n", events(&stream)))
}

fn gemini(request: &Request, call: Option<(String, Value)>, streams: bool) -> (&'static str, String) {
    let wants = &request.body["generationConfig"];
    let is_json =
        wants["responseMimeType"] == "application/json" || wants.get("responseJsonSchema").is_some();
    let part = match call {
        // Internal questions of the client: the next speaker and the choice of a model.
        _ if is_json => {
            let choice = json!({"reasoning": "x", "next_speaker": "user", "model_choice": "flash", "complexity_reasoning": "x", "complexity_score": 1});
            json!({"text": choice.to_string()})
        }
        None => json!({"text": "DONE"}),
        Some((tool, input)) => json!({"functionCall": {"name": tool, "args": input}}),
    };
    let body = json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}, "modelVersion": "scripted"});
    if streams { (EVENTS, events(&[body])) } else { (JSON, body.to_string()) }
}

fn unique_id(kind: &str) -> String {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    format!("{kind}_{:012}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}
