//! Conditions in CEL: compiled only when everything else about a rule matches, because compiling is what costs.

use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr};
use cel::extractors::This;
use cel::{Context, ExecutionError, Program, Value};
use tanmi_base::Lang;

/// Lists within lists take seconds, and a hook has not that many.
const MAX_NESTED_LOOPS: usize = 1;
const MAX_BYTES: usize = 2000;

/// With where it is, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    pub line: usize,
    pub column: usize,
    zh: String,
    en: String,
}

impl ConditionError {
    fn new(zh: impl Into<String>, en: impl Into<String>) -> ConditionError {
        ConditionError { line: 0, column: 0, zh: zh.into(), en: en.into() }
    }

    /// The language's own words, which are English.
    fn plain(message: String) -> ConditionError {
        ConditionError::new(message.clone(), message)
    }

    pub fn message(&self, lang: Lang) -> String {
        let message = lang.pick(&self.zh, &self.en);
        match (self.line, self.column) {
            (0, _) => message.clone(),
            (line, column) => format!("{line}:{column}: {message}"),
        }
    }
}

pub(super) fn compile(source: &str) -> Result<Program, ConditionError> {
    if source.len() > MAX_BYTES {
        return Err(ConditionError::new(
            format!("超过 {MAX_BYTES} 字节"),
            format!("longer than {MAX_BYTES} bytes"),
        ));
    }
    let program = Program::compile(source).map_err(|errors| {
        let Some(first) = errors.errors.first() else {
            return ConditionError::new("无法解析", "cannot be parsed");
        };
        let error = readable(&first.msg, source);
        let place = |number| usize::try_from(number).unwrap_or(0);
        ConditionError { line: place(first.pos.0), column: place(first.pos.1), ..error }
    })?;
    if loops(program.expression()) > MAX_NESTED_LOOPS {
        return Err(ConditionError::new(
            format!("循环嵌套超过 {MAX_NESTED_LOOPS} 层"),
            format!("loops are nested more than {MAX_NESTED_LOOPS} deep"),
        ));
    }
    Ok(program)
}

pub(super) fn run(program: &Program, context: &Context<'_, '_>) -> Result<bool, ConditionError> {
    match program.execute(context) {
        Ok(Value::Bool(yes)) => Ok(yes),
        Ok(other) => {
            let kind = other.type_of();
            let en = format!("the result is {kind}, expected true or false");
            Err(ConditionError::new(format!("结果是 {kind}，应为 true 或 false"), en))
        }
        Err(error) => Err(ConditionError::plain(error.to_string())),
    }
}

/// The parser lists every token it would have taken; people need the first half, and a word on JavaScript's ways.
fn readable(message: &str, source: &str) -> ConditionError {
    if message.contains("Recursion limit") {
        return ConditionError::new("嵌套过深", "nested too deeply");
    }
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message.split(" expecting ").next().unwrap_or(message);
    if source.contains("===") || source.contains("!==") {
        return ConditionError::new(
            format!("{message}（请用 == 和 != 代替 === 和 !==）"),
            format!("{message} (use == and != instead of === and !==)"),
        );
    }
    ConditionError::plain(message.to_owned())
}

/// How many loops stand inside each other.
fn loops(expr: &IdedExpr) -> usize {
    let inner = parts(expr).into_iter().map(loops).max().unwrap_or(0);
    inner + usize::from(matches!(expr.expr, Expr::Comprehension(_)))
}

fn parts(expr: &IdedExpr) -> Vec<&IdedExpr> {
    match &expr.expr {
        Expr::Call(call) => call.target.iter().map(|target| target.as_ref()).chain(&call.args).collect(),
        Expr::Comprehension(loop_) => {
            vec![&loop_.iter_range, &loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Struct(object) => object.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn entry_parts(entry: &cel::common::ast::EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        cel::common::ast::EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        cel::common::ast::EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// As in the language the specification's examples are written in: part of a text, or one of a list.
pub(super) fn includes(This(this): This<Value>, wanted: Value) -> Result<bool, ExecutionError> {
    match (&this, &wanted) {
        (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
        (Value::List(list), one) => Ok(list.iter().any(|item| item == one)),
        (Value::Null, _) => Ok(false),
        _ => Err(ExecutionError::function_error("includes", "works on strings and lists only")),
    }
}

/// Everything that can be said about a condition without an event: whether it can be read, and whether what it names
/// exists.
pub fn check_condition(source: &str) -> Result<(), ConditionError> {
    let program = compile(source)?;
    let sample = super::scope::sample();
    check_names(program.expression(), &sample, &mut Vec::new())?;
    let unknown: Vec<String> = program
        .references()
        .functions()
        .iter()
        .filter(|name| !is_function(name))
        .map(|n| n.to_string())
        .collect();
    match unknown.first() {
        Some(name) => {
            Err(ConditionError::new(format!("未知的函数 {name}()"), format!("unknown function {name}()")))
        }
        None => Ok(()),
    }
}

fn is_function(name: &str) -> bool {
    let is_operator = !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.starts_with('_');
    // A name of the language cannot be given to another function: that is how it is known to be one.
    is_operator || name == "includes" || Context::default().add_function(name, || false).is_err()
}

/// What `type(x)` can be compared with.
const TYPES: &[&str] =
    &["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// `node.titel` is found here; what stands in a loop's variable is not looked into.
fn check_names(
    expr: &IdedExpr,
    sample: &serde_json::Value,
    bound: &mut Vec<String>,
) -> Result<Option<serde_json::Value>, ConditionError> {
    match &expr.expr {
        Expr::Ident(name)
            if bound.contains(name) || name.starts_with('@') || TYPES.contains(&name.as_str()) =>
        {
            Ok(None)
        }
        Expr::Ident(name) => match sample.get(name.trim_start_matches('.')) {
            Some(value) => Ok(Some(value.clone())),
            None => Err(no_such(name, sample)),
        },
        Expr::Select(select) => {
            let Some(value) = check_names(&select.operand, sample, bound)? else { return Ok(None) };
            match value.get(&select.field) {
                Some(inner) => Ok(Some(inner.clone())),
                None if select.test => Ok(None),
                // What rules share among themselves is theirs to name.
                None if value.as_object().is_some_and(|map| map.is_empty()) => Ok(None),
                None if value.is_object() => Err(no_such(&format!(".{}", select.field), &value)),
                None => {
                    let field = &select.field;
                    let zh = format!("该值没有字段，不能取 .{field}");
                    Err(ConditionError::new(zh, format!("cannot access .{field}: the value has no fields")))
                }
            }
        }
        Expr::Comprehension(loop_) => {
            check_names(&loop_.iter_range, sample, bound)?;
            let before = bound.len();
            bound.push(loop_.iter_var.clone());
            bound.extend(loop_.iter_var2.clone());
            bound.push(loop_.accu_var.clone());
            for part in [&loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result] {
                check_names(part, sample, bound)?;
            }
            bound.truncate(before);
            Ok(None)
        }
        _ => {
            for part in parts(expr) {
                check_names(part, sample, bound)?;
            }
            Ok(None)
        }
    }
}

fn no_such(name: &str, among: &serde_json::Value) -> ConditionError {
    let keys: Vec<&str> =
        among.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
    let keys = keys.join(", ");
    ConditionError::new(
        format!("未知的名称 {name}，可用：{keys}"),
        format!("unknown name {name}; available: {keys}"),
    )
}

/// JSON as the language knows it: all whole numbers of one kind, so that they can be compared and counted with.
pub(super) fn to_cel(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(list) => Value::List(Arc::new(list.iter().map(to_cel).collect())),
        serde_json::Value::Object(map) => {
            let map: std::collections::HashMap<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), to_cel(value))).collect();
            Value::Map(map.into())
        }
    }
}
