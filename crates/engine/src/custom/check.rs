//! Finds mistakes in a condition without an event: unknown names and functions, and results that are not true or false.
//!
//! The type of an expression is that of its value in a sample of all variables. Where it depends on the data, such as
//! for loop variables and shared values, the expression is accepted.

use cel::Context;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo};
use serde_json::{Value, json};

use super::condition::{ConditionError, compile, not_boolean, parts};

/// Checks whether a condition compiles, whether the variables, fields and functions that it uses exist, and whether
/// its result is true or false.
pub fn check_condition(source: &str) -> Result<(), ConditionError> {
    let program = compile(source)?;
    let sample = super::scope::sample();
    let mut check = Check { source: program.source_info(), sample: &sample, bound: Vec::new() };
    check.boolean(program.expression())
}

/// The type names that `type(x)` can be compared with.
const TYPES: &[&str] =
    &["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

struct Check<'a> {
    source: &'a SourceInfo,
    /// All variables.
    sample: &'a Value,
    /// The loop variables around the expression. Their fields are not checked.
    bound: Vec<String>,
}

impl Check<'_> {
    /// Checks an expression that has to be true or false.
    fn boolean(&mut self, expr: &IdedExpr) -> Result<(), ConditionError> {
        match self.value(expr)? {
            None | Some(Value::Bool(_)) => Ok(()),
            Some(other) => Err(self.at(expr, not_boolean(type_name(&other)))),
        }
    }

    /// Checks an expression, and returns a sample value of it if its type is known.
    fn value(&mut self, expr: &IdedExpr) -> Result<Option<Value>, ConditionError> {
        match &expr.expr {
            Expr::Ident(name) => self.variable(expr, name),
            Expr::Select(select) => self.field(expr, select),
            Expr::Call(call) => self.call(expr, call),
            Expr::Comprehension(loop_) => self.comprehension(loop_),
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Unspecified | Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => {
                for part in parts(expr) {
                    self.value(part)?;
                }
                Ok(match &expr.expr {
                    Expr::List(_) => Some(json!([])),
                    Expr::Map(_) => Some(json!({})),
                    _ => None,
                })
            }
        }
    }

    fn variable(&self, expr: &IdedExpr, name: &str) -> Result<Option<Value>, ConditionError> {
        if self.bound.iter().any(|bound| bound == name) || name.starts_with('@') || TYPES.contains(&name) {
            return Ok(None);
        }
        match self.sample.get(name.trim_start_matches('.')) {
            Some(value) => Ok(Some(value.clone())),
            None => Err(self.at(expr, unknown_name(name, self.sample))),
        }
    }

    fn field(&mut self, expr: &IdedExpr, select: &SelectExpr) -> Result<Option<Value>, ConditionError> {
        let Some(value) = self.value(&select.operand)? else { return Ok(None) };
        let field = &select.field;
        match value.get(field) {
            _ if select.test => Ok(Some(json!(true))),
            Some(inner) => Ok(Some(inner.clone())),
            // `shared` is empty in the sample: rules may share values under any name.
            None if value.as_object().is_some_and(|map| map.is_empty()) => Ok(None),
            None if value.is_object() => Err(self.at(expr, unknown_name(&format!(".{field}"), &value))),
            None => {
                let zh = format!("该值没有字段，不能取 .{field}");
                let en = format!("cannot access .{field}: the value has no fields");
                Err(self.at(expr, ConditionError::new(zh, en)))
            }
        }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Result<Option<Value>, ConditionError> {
        let name = call.func_name.as_str();
        if !is_function(name) {
            let (zh, en) = (format!("未知的函数 {name}()"), format!("unknown function {name}()"));
            return Err(self.at(expr, ConditionError::new(zh, en)));
        }
        if let (CONDITIONAL, [condition, then, otherwise]) = (name, call.args.as_slice()) {
            self.boolean(condition)?;
            let (then, otherwise) = (self.value(then)?, self.value(otherwise)?);
            return Ok(
                then.filter(|then| otherwise.is_some_and(|other| type_name(&other) == type_name(then)))
            );
        }
        let takes_booleans = ["_&&_", "_||_", "!_"].contains(&name);
        let mut first = None;
        for part in parts(expr) {
            match takes_booleans {
                true => self.boolean(part)?,
                false => first = first.or(self.value(part)?),
            }
        }
        Ok(match name {
            "_-_" | "_+_" | "_*_" | "_/_" | "_%_" | "-_" => first,
            "size" | "int" | "uint" | "double" => Some(json!(0)),
            "string" => Some(json!("")),
            _ if takes_booleans || BOOLEAN_FUNCTIONS.contains(&name) => Some(json!(true)),
            _ => None,
        })
    }

    fn comprehension(&mut self, loop_: &ComprehensionExpr) -> Result<Option<Value>, ConditionError> {
        self.value(&loop_.iter_range)?;
        let before = self.bound.len();
        self.bound.push(loop_.iter_var.clone());
        self.bound.extend(loop_.iter_var2.clone());
        self.bound.push(loop_.accu_var.clone());
        let initial = self.value(&loop_.accu_init)?;
        for part in [&loop_.loop_cond, &loop_.loop_step] {
            self.value(part)?;
        }
        let result = self.value(&loop_.result)?;
        self.bound.truncate(before);
        let is_accumulator = matches!(&loop_.result.expr, Expr::Ident(name) if *name == loop_.accu_var);
        Ok(if is_accumulator { initial } else { result })
    }

    /// Returns the error with the position of the expression.
    fn at(&self, expr: &IdedExpr, error: ConditionError) -> ConditionError {
        // A part that a macro inserted has no position.
        let start = self.source.offset_for(expr.id).map_or(0, |(start, _)| start as usize);
        let before = self.source.source.get(..start).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        error.at(before.matches('\n').count() + 1, line.chars().count() + 1)
    }
}

const CONDITIONAL: &str = "_?_:_";
const BOOLEAN_FUNCTIONS: &[&str] =
    &["_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "includes", "contains", "startsWith", "endsWith"];

fn literal_value(literal: &LiteralValue) -> Option<Value> {
    match literal {
        LiteralValue::Boolean(_) => Some(json!(true)),
        LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Some(json!(0)),
        LiteralValue::String(_) => Some(json!("")),
        LiteralValue::Null => Some(Value::Null),
        LiteralValue::Bytes(_) => None,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

fn is_function(name: &str) -> bool {
    let is_operator = !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.starts_with('_');
    // `add_function` fails for the name of a built-in function, which shows that the function exists.
    is_operator || name == "includes" || Context::default().add_function(name, || false).is_err()
}

fn unknown_name(name: &str, object: &Value) -> ConditionError {
    let keys: Vec<&str> =
        object.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
    let keys = keys.join(", ");
    ConditionError::new(
        format!("未知的名称 {name}，可用：{keys}"),
        format!("unknown name {name}; available: {keys}"),
    )
}
