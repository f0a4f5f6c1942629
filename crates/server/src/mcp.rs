//! `tanmi mcp`: the MCP server with the tools of [`tools`].
//!
//! Calls run concurrently on blocking threads, because each one accesses files under a lock. When the client
//! disconnects, running calls still finish.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, Implementation, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tanmi_app::App;
use tanmi_app::resolver::CallTarget;
use tanmi_base::{Interface, Lang};
use tanmi_event::Platform;
use tanmi_platform::CLIENTS;

use crate::tools::{self, ToolRequest};

mod calls;
mod transport;

/// Returns the text that every client receives when it connects: when to use Tanmi, the order of calls, and
/// the defaults of omitted ids.
fn instructions(lang: Lang) -> &'static str {
    lang.pick(INSTRUCTIONS_ZH, INSTRUCTIONS_EN)
}

const INSTRUCTIONS_ZH: &str = "Tanmi 把多步骤的计划工作保存在本项目的工作区（节点树）中；简单问答不需要它。用 workspace_init 新建工作区或\
继续已有的，然后调用 session_bind。用 node_plan 规划，传入 context_get 的 rulesHash；开始之前先给用户看计划。每个节点：node_next 或 \
node_transition start 开始，用 log_append 记录进展，受阻时 problem_update，最后 node_transition complete 并写结论。规划节点有子节点，在其后完成。用 \
memory_save 保存决定和偏好；关于过去的问题用 memory_search。省略的 ID 指本会话、其工作区和聚焦节点；未绑定的会话使用项目唯一的活跃\
工作区。只在用户要求时删除或归档。";

const INSTRUCTIONS_EN: &str = "Tanmi keeps planned work of several steps in workspaces (trees of nodes) in this project; not \
for quick questions. Create a workspace with workspace_init or continue an existing one, then call session_bind. Plan with \
node_plan, passing the rulesHash of context_get; show the plan to the user before you start it. Per node: node_next or \
node_transition start, log_append for progress, problem_update when blocked, node_transition complete with a conclusion. \
Planning nodes have children and complete after them. Save decisions and preferences with memory_save; answer questions about \
the past with memory_search. IDs left out mean this session, its workspace and its focused node; an unbound session uses the \
project's only active workspace. Delete or archive only when the user asks.";

/// Serves until the client closes its end.
pub fn run(app: App) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let server = Server::new(Arc::new(app));
        match server.serve(transport::Stdio::new()).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
            // The client disconnected before the handshake, which is not an error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    });
    // Longer than the lock timeout of any call, so that running calls finish, but the process still ends.
    runtime.shutdown_timeout(Duration::from_secs(10));
    outcome
}

/// The server of one connection.
#[derive(Clone)]
pub struct Server {
    app: Arc<App>,
    /// Set when the client connects: whether its hooks ran lately. They inject what `context_check` returns.
    has_hooks: Arc<OnceLock<bool>>,
    /// Whether the client may only call tools that read.
    is_reader: bool,
    instructions: &'static str,
}

impl Server {
    /// Returns the server of a client. Reads which workspace the client works in, for the language of its instructions.
    pub fn new(app: Arc<App>) -> Server {
        let instructions = instructions(app.for_agent(&CallTarget::default()).lang());
        Server { app, has_hooks: Arc::default(), is_reader: false, instructions }
    }

    /// Returns the server for a client that may only read, or for one that may do everything.
    pub fn for_reader(self, is_reader: bool) -> Server {
        Server { is_reader, ..self }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> InitializeResult {
        let name = Implementation::new("tanmi", env!("CARGO_PKG_VERSION"));
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(name)
            .with_instructions(self.instructions)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let platform = CLIENTS.platform_of_mcp_client(&request.client_info.name);
        let has_hooks = platform.is_some_and(|platform| self.app.events.has_recent_hooks(platform));
        let _ = self.has_hooks.set(has_hooks);
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = tanmi_base::text::fit(&tanmi_base::text::one_line(&request.method), 60);
        // The SDK reports a known method with invalid parameters as a custom request.
        if ["tools/call", "tools/list", "initialize", "ping"].contains(&method.as_str()) {
            let message = format!("invalid parameters for {method}");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method {method:?}"), None))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let has_hooks = self.has_hooks.get().is_some_and(|has_hooks| *has_hooks);
        Ok(ListToolsResult::with_all_items(tool_list(has_hooks)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name) else {
            return Err(unknown_tool(&request.name));
        };
        if self.is_reader && !tool.spec.is_read_only {
            return Ok(CallToolResponse::from(forbidden()));
        }
        let arguments = request.arguments.unwrap_or_default();
        let app = match platform_of_call(&context) {
            Some(platform) => Arc::new(self.app.with_client(platform)),
            None => Arc::clone(&self.app),
        };
        let meta = CLIENTS.session_of_call(&serde_json::to_value(&context.meta).unwrap_or_default());
        let meta = meta.or_else(|| session_from_http(&context));
        let cancelled = context.ct.clone();
        let work = tokio::task::spawn_blocking(move || {
            // A call can be cancelled only before it starts; once started, it finishes.
            if cancelled.is_cancelled() {
                return Err(ErrorData::invalid_request("the call was cancelled before it started", None));
            }
            Ok(run_tool(&app, tool, &arguments, meta))
        });
        match work.await {
            Ok(result) => result.map(CallToolResponse::from),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }
}

fn forbidden() -> CallToolResult {
    let message = "the token allows only reading; ask an admin for a member token";
    let mut result =
        CallToolResult::structured_error(json!({"error": {"code": "FORBIDDEN", "message": message}}));
    result.content = vec![ContentBlock::text(format!("FORBIDDEN: {message}"))];
    result
}

/// Returns a session id made from the MCP session of an HTTP connection.
fn session_from_http(context: &RequestContext<RoleServer>) -> Option<String> {
    let parts = context.extensions.get::<axum::http::request::Parts>()?;
    let id = parts.headers.get("mcp-session-id")?.to_str().ok()?;
    Some(format!("mcp-{id}"))
}

/// Returns the platform of the client that makes a call, if it is known.
fn platform_of_call(context: &RequestContext<RoleServer>) -> Option<&'static Platform> {
    let connected = || context.peer.peer_info().map(|info| info.client_info.clone());
    let client = context.meta.client_info().or_else(connected)?;
    CLIENTS.platform_of_mcp_client(&client.name)
}

/// Returns the tools for a client. One with hooks does not need `context_check`, but may call it.
fn tool_list(has_hooks: bool) -> Vec<Tool> {
    let is_listed = |tool: &&tools::Tool| !(has_hooks && tool.spec.name == "context_check");
    tools::TOOLS.iter().filter(is_listed).map(describe).collect()
}

fn describe(tool: &tools::Tool) -> Tool {
    let spec = &tool.spec;
    let mut described = Tool::new(spec.name, spec.about, Arc::new(tools::schema(spec.params.iter())));
    // Only what differs from the defaults of the protocol, except that a destructive tool says so.
    let hints = ToolAnnotations::new();
    described.annotations = Some(match (spec.is_read_only, tool.is_idempotent) {
        (true, _) => hints.read_only(true),
        (false, true) => hints.destructive(tool.is_destructive).idempotent(true),
        (false, false) => hints.destructive(tool.is_destructive),
    });
    described
}

fn unknown_tool(name: &str) -> ErrorData {
    let near = tanmi_app::similar::find_similar(name, tools::TOOLS.iter().map(|tool| tool.spec.name));
    let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    let name = tanmi_base::text::fit(&tanmi_base::text::one_line(name), 60);
    let data = json!({"code": "UNKNOWN_TOOL", "tool": name, "near": near});
    ErrorData::invalid_params(format!("unknown tool {name:?}{hint}"), Some(data))
}

/// Runs one call and returns the result for the model: structured JSON, and for an error also its text.
fn run_tool(
    app: &App,
    tool: &tools::Tool,
    arguments: &serde_json::Map<String, Value>,
    meta: Option<String>,
) -> CallToolResult {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let target =
        CallTarget { session: text("sessionId"), meta: meta.as_deref(), workspace: text("workspaceId") };
    let app = &app.for_agent(&target);
    let request = ToolRequest {
        app,
        spec: &tool.spec,
        arguments,
        meta,
        expected_versions: None,
        interface: Interface::Mcp,
        is_for_agent: true,
    };
    match tools::perform(&request, tool.handler) {
        Ok(mut value) => {
            // The sequence number is for clients of the change feed; a model has none.
            if let Some(fields) = value.as_object_mut() {
                fields.shift_remove("change");
            }
            CallToolResult::structured(value)
        }
        Err(error) => {
            let mut text = format!("{}: {}", text_of(&error, "code"), text_of(&error, "message"));
            for more in [text_of(&error, "hint"), text_of(&error, "untrusted")] {
                if !more.is_empty() {
                    text.push('\n');
                    text.push_str(more);
                }
            }
            let mut result = CallToolResult::structured_error(json!({"error": error}));
            result.content = vec![ContentBlock::text(text)];
            result
        }
    }
}

fn text_of<'a>(error: &'a Value, key: &str) -> &'a str {
    error.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_in_both_languages_stay_within_size_limit() {
        for lang in [Lang::Zh, Lang::En] {
            assert!(instructions(lang).len() <= 900, "{lang:?}: {}", instructions(lang).len());
        }
    }

    #[test]
    fn tool_list_stays_within_size_limit() {
        let size = json!({"tools": tool_list(false)}).to_string().chars().count();
        let count = tools::TOOLS.len();
        assert!(size < 15_000 && count <= 31, "{size} characters for {count} tools");
    }

    #[test]
    fn tool_hints_name_reads_and_removals() {
        let hints = |name: &str| {
            let tool = tools::find(name).map(describe).unwrap();
            serde_json::to_value(tool.annotations).unwrap()
        };
        assert_eq!(hints("node_get"), json!({"readOnlyHint": true}));
        assert_eq!(hints("node_create"), json!({"destructiveHint": false}));
        assert_eq!(hints("problem_clear"), json!({"destructiveHint": false, "idempotentHint": true}));
        for name in ["workspace_delete", "node_delete", "memory_forget"] {
            assert_eq!(hints(name), json!({"destructiveHint": true, "idempotentHint": true}), "{name}");
        }
    }
}
