//! Conditions of custom rules, in CEL: compiles and evaluates them. Compiling one is slow, so it happens only when
//! everything else about the rule matches. [`super::check`] finds mistakes without an event.

use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr};
use cel::extractors::This;
use cel::{Context, ExecutionError, Program, Value};
use tanmi_base::Lang;

/// Deeper nested loops can take seconds, which is too long for a hook.
const MAX_NESTED_LOOPS: usize = 1;
const MAX_BYTES: usize = 2000;

/// An error in a condition. `line` and `column` are 0 if the position is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    pub line: usize,
    pub column: usize,
    zh: String,
    en: String,
}

impl ConditionError {
    pub(super) fn new(zh: impl Into<String>, en: impl Into<String>) -> ConditionError {
        ConditionError { line: 0, column: 0, zh: zh.into(), en: en.into() }
    }

    /// A message of the CEL library, which exists only in English.
    fn untranslated(message: String) -> ConditionError {
        ConditionError::new(message.clone(), message)
    }

    /// Returns the error with its position, both starting at 1.
    pub(super) fn at(self, line: usize, column: usize) -> ConditionError {
        ConditionError { line, column, ..self }
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
        let error = parse_error(&first.msg, source);
        let position = |number| usize::try_from(number).unwrap_or(0);
        ConditionError { line: position(first.pos.0), column: position(first.pos.1), ..error }
    })?;
    if loop_depth(program.expression()) > MAX_NESTED_LOOPS {
        return Err(ConditionError::new(
            format!("循环嵌套超过 {MAX_NESTED_LOOPS} 层"),
            format!("loops are nested more than {MAX_NESTED_LOOPS} deep"),
        ));
    }
    Ok(program)
}

pub(super) fn run(program: &Program, context: &Context<'_, '_>) -> Result<bool, ConditionError> {
    match program.execute(context) {
        Ok(Value::Bool(is_met)) => Ok(is_met),
        Ok(other) => Err(not_boolean(&other.type_of().to_string())),
        Err(error) => Err(ConditionError::untranslated(error.to_string())),
    }
}

/// Returns the error of a condition with a result of another type.
pub(super) fn not_boolean(kind: &str) -> ConditionError {
    ConditionError::new(
        format!("结果是 {kind}，应为 true 或 false"),
        format!("the result is {kind}, expected true or false"),
    )
}

/// Shortens a parser message. The parser lists every token it expected, which does not help the user. A condition
/// with `===` or `!==`, as in JavaScript, gets a hint.
fn parse_error(message: &str, source: &str) -> ConditionError {
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
    ConditionError::untranslated(message.to_owned())
}

/// Returns the nesting depth of loops.
fn loop_depth(expr: &IdedExpr) -> usize {
    let inner = parts(expr).into_iter().map(loop_depth).max().unwrap_or(0);
    inner + usize::from(matches!(expr.expr, Expr::Comprehension(_)))
}

/// Returns the direct parts of an expression.
pub(super) fn parts(expr: &IdedExpr) -> Vec<&IdedExpr> {
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

/// The method `includes` of JavaScript, which the examples of the specification use: whether a string contains a
/// substring, or a list an item.
pub(super) fn includes(This(this): This<Value>, searched: Value) -> Result<bool, ExecutionError> {
    match (&this, &searched) {
        (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
        (Value::List(list), searched) => Ok(list.iter().any(|item| item == searched)),
        (Value::Null, _) => Ok(false),
        _ => Err(ExecutionError::function_error("includes", "works on strings and lists only")),
    }
}

/// Converts JSON to a CEL value. All whole numbers become `int`, so that they can be compared with and added to each
/// other.
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
