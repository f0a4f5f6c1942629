//! Usage errors: in Chinese, as JSON, and where clap's own English text does not say what is expected.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};
use tanmi_base::Lang;

use super::help::localized_usage;
use super::{Cli, Command};
use crate::out;

/// What the parsers of Rust say about a number, and what the user should know.
const NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("invalid float literal", "expected a number"),
];

/// Refuses `--json` for commands that print text for a shell or a pager, and for `help`, which clap runs itself.
pub fn check_json(parsed: Result<Cli, clap::Error>, args: &[OsString]) -> Result<Cli, clap::Error> {
    let is_json = args.iter().any(|argument| argument == "--json");
    let command = match &parsed {
        Ok(Cli { command: Command::Man { .. }, .. }) => "man",
        Ok(Cli { command: Command::Completions { .. }, .. }) => "completions",
        Err(_) if args.get(1).is_some_and(|argument| argument == "help") => "help",
        _ => return parsed,
    };
    if is_json { Err(no_json(command)) } else { parsed }
}

fn no_json(command: &str) -> clap::Error {
    let mut error = clap::Error::new(ErrorKind::ArgumentConflict).with_cmd(&Cli::command());
    error.insert(ContextKind::InvalidArg, ContextValue::String(String::from("--json")));
    error.insert(ContextKind::PriorArg, ContextValue::String(command.to_owned()));
    error
}

/// Returns a usage error, given as its text without styles, for programs: the message in one line, and further parts in
/// fields of their own.
pub fn usage_as_json(text: &str) -> Value {
    let mut error = json!({"code": "USAGE", "message": ""});
    for part in text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")) {
        let field = |labels: [&str; 2]| labels.iter().find_map(|label| part.strip_prefix(label));
        if let Some(usage) = field(["Usage: ", "用法："]) {
            error["usage"] = json!(usage);
        } else if let Some(tip) = field(["tip: ", "提示："]) {
            error["hint"] = json!(tip);
        } else if error["message"] == "" {
            let message = field(["error: ", "错误："]).unwrap_or(&part);
            error["message"] = json!(message);
        }
    }
    error
}

/// Returns the text of a usage error, or `None` if clap's own text is to be printed: in English unless it is about a
/// number, for help and the version, and for kinds of errors that are not known here.
pub fn usage_message(error: &clap::Error, lang: Lang) -> Option<String> {
    if lang == Lang::En {
        let text = error.render().ansi().to_string();
        let (known, better) = NUMBERS.into_iter().find(|(known, _)| text.contains(known))?;
        return (error.kind() == ErrorKind::ValueValidation).then(|| text.replacen(known, better, 1));
    }
    let reason = reason(error)?;
    let mut text = format!("{}：{reason}\n", out::paint(out::RED.bold(), "错误"));
    let tips = tips(error);
    if !tips.is_empty() {
        text.push('\n');
    }
    for tip in tips {
        text.push_str(&format!("  {}：{tip}\n", out::paint(out::GREEN, "提示")));
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        let usage = localized_usage(&usage.to_string(), lang);
        text.push_str(&format!("\n{}{usage}\n", out::paint(out::BOLD, "用法：")));
    }
    text.push_str("\n详情请使用 '--help'。\n");
    Some(text)
}

fn reason(error: &clap::Error) -> Option<String> {
    let argument = || string(error, ContextKind::InvalidArg);
    let value = || string(error, ContextKind::InvalidValue);
    let number = |kind| match error.get(kind) {
        Some(ContextValue::Number(number)) => Some(*number),
        _ => None,
    };
    let actual = || number(ContextKind::ActualNumValues);
    Some(match error.kind() {
        ErrorKind::UnknownArgument => format!("未知参数 {}", wrong(argument()?)),
        ErrorKind::InvalidSubcommand => {
            format!("未知命令 {}", wrong(string(error, ContextKind::InvalidSubcommand)?))
        }
        ErrorKind::MissingSubcommand => {
            let command = wrong(string(error, ContextKind::InvalidSubcommand)?);
            format!("{command} 需要子命令{}", choices("子命令", error, ContextKind::ValidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => {
            format!("缺少必需的参数：{}", list(&strings(error, ContextKind::InvalidArg)))
        }
        ErrorKind::InvalidValue => invalid_value(error)?,
        ErrorKind::ValueValidation => {
            let detail = error.source().map(|source| format!("：{}", detail(source))).unwrap_or_default();
            format!("{} 的值 {} 无效{detail}", quoted(argument()?), wrong(value()?))
        }
        ErrorKind::ArgumentConflict => conflict(error)?,
        ErrorKind::TooManyValues => {
            format!("{} 不接受更多的值，多余的值是 {}", quoted(argument()?), wrong(value()?))
        }
        ErrorKind::TooFewValues => {
            let needed = number(ContextKind::MinValues)?;
            format!("{} 至少需要 {needed} 个值，只给了 {} 个", quoted(argument()?), actual()?)
        }
        ErrorKind::WrongNumberOfValues => {
            let needed = number(ContextKind::ExpectedNumValues)?;
            format!("{} 需要 {needed} 个值，给了 {} 个", quoted(argument()?), actual()?)
        }
        ErrorKind::NoEquals => format!("给 {} 赋值时需要等号", quoted(argument()?)),
        ErrorKind::InvalidUtf8 => String::from("参数中有无效的 UTF-8 字符"),
        _ => return None,
    })
}

fn invalid_value(error: &clap::Error) -> Option<String> {
    let argument = quoted(string(error, ContextKind::InvalidArg)?);
    let value = string(error, ContextKind::InvalidValue)?;
    let what = match value.is_empty() {
        true => format!("{argument} 需要一个值"),
        false => format!("{argument} 的值 {} 无效", wrong(value)),
    };
    Some(what + &choices("可选值", error, ContextKind::ValidValue))
}

fn conflict(error: &clap::Error) -> Option<String> {
    let first = string(error, ContextKind::InvalidArg)?;
    let others = strings(error, ContextKind::PriorArg);
    Some(match others.as_slice() {
        [same] if same == first => format!("{} 不能重复使用", wrong(first)),
        [] => format!("{} 不能与其他已给出的参数同时使用", wrong(first)),
        [other] => format!("{} 不能与 {} 同时使用", wrong(first), wrong(other)),
        _ => format!("{} 不能与以下参数同时使用：{}", wrong(first), list(&others)),
    })
}

/// Returns what is wrong with a value, from the error of its parser.
fn detail(source: &(dyn std::error::Error + 'static)) -> String {
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        return String::from(match error.kind() {
            IntErrorKind::PosOverflow => "数字太大",
            IntErrorKind::NegOverflow => "数字太小",
            _ => "应为整数",
        });
    }
    if source.is::<ParseFloatError>() {
        return String::from("应为数字");
    }
    let text = source.to_string();
    match text.split_once(" is not in ") {
        Some((number, range)) => format!("{number} 不在 {range} 范围内"),
        None if text == "invalid digit found in string" => String::from("应为整数"),
        None => text,
    }
}

fn tips(error: &clap::Error) -> Vec<String> {
    let similar = [
        (ContextKind::SuggestedSubcommand, "有相似的命令"),
        (ContextKind::SuggestedArg, "有相似的参数"),
        (ContextKind::SuggestedValue, "有相似的值"),
    ];
    let mut tips = Vec::new();
    for (kind, what) in similar {
        let names: Vec<String> = strings(error, kind).iter().map(|name| right(name)).collect();
        if !names.is_empty() {
            tips.push(format!("{what}：{}", names.join("、")));
        }
    }
    if let Some(ContextValue::StyledStrs(texts)) = error.get(ContextKind::Suggested) {
        tips.extend(texts.iter().map(|text| translated_tip(&text.to_string())));
    }
    tips
}

/// Translates the tips that clap gives as whole English sentences; an unknown one stays as it is.
fn translated_tip(tip: &str) -> String {
    let as_value = tip.strip_prefix("to pass '").and_then(|rest| rest.split_once("' as a value, use '"));
    if let Some((value, command)) = as_value {
        return format!("要把 '{value}' 作为值传入，请用 '{command}");
    }
    if let Some((name, _)) = tip.strip_prefix("subcommand '").and_then(|rest| rest.split_once("' exists; ")) {
        return format!("有命令 {}；要使用它，请去掉前面的 '--'", right(name));
    }
    match tip.strip_suffix(" exists") {
        Some(name) => format!("可以用 {name}"),
        None => tip.to_owned(),
    }
}

fn string(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

fn strings(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

fn choices(what: &str, error: &clap::Error, kind: ContextKind) -> String {
    let names: Vec<String> = strings(error, kind).iter().map(|name| out::paint(out::GREEN, name)).collect();
    if names.is_empty() { String::new() } else { format!("\n  [{what}：{}]", names.join("、")) }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("\n  {}", out::paint(out::GREEN, name))).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", out::paint(out::BOLD, text))
}

fn wrong(text: &str) -> String {
    format!("'{}'", out::paint(out::YELLOW, text))
}

fn right(text: &str) -> String {
    format!("'{}'", out::paint(out::GREEN, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn text(args: &[&str]) -> String {
        let error = Cli::try_parse_from([&["tanmi"], args].concat()).unwrap_err();
        let text = usage_message(&error, Lang::Zh).unwrap();
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn numbers_out_of_range_and_malformed_are_explained() {
        assert!(text(&["serve", "--port", "99999"]).contains("99999 不在 0..=65535 范围内"));
        assert!(text(&["log", "--limit", "many"]).contains("应为整数"));
        assert!(text(&["memory", "save-fact", "x", "--confidence", "high"]).contains("应为数字"));
    }

    #[test]
    fn numbers_are_explained_in_english() {
        for (args, expected) in [
            (&["tanmi", "log", "--limit", "many"][..], "expected a whole number"),
            (&["tanmi", "memory", "save-fact", "x", "--confidence", "high"], "expected a number"),
        ] {
            let error = Cli::try_parse_from(args).unwrap_err();
            assert!(usage_message(&error, Lang::En).unwrap().contains(expected), "{args:?}");
        }
    }

    #[test]
    fn usage_error_as_json_has_one_line_and_its_parts() {
        let text = "error: missing:\n  --title <T>\n  --type <T>\n\n  tip: see 'x'\n\nUsage: tanmi node create\n\nFor more\n";
        let error = usage_as_json(text);
        assert_eq!(error["message"], "missing: --title <T> --type <T>");
        assert_eq!((&error["hint"], &error["usage"]), (&json!("see 'x'"), &json!("tanmi node create")));
    }

    #[test]
    fn tips_of_clap_are_translated() {
        let tips = [
            "to pass '--x' as a value, use '-- --x'",
            "subcommand 'node' exists; to use it, remove the '--' before it",
            "'node list --depth' exists",
        ];
        let translated = tips.map(translated_tip);
        assert_eq!(translated[0], "要把 '--x' 作为值传入，请用 '-- --x'");
        assert!(translated.iter().all(|tip| tip.chars().any(tanmi_base::lang::is_han)), "{translated:?}");
    }
}
