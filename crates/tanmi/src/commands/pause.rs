//! `tanmi pause` and `tanmi resume`

use serde_json::json;
use tanmi_app::Error;
use tanmi_base::clock;
use tanmi_session::pause as pause_state;

use super::{CommandContext, Result};

pub fn pause(context: &CommandContext, duration: Option<&str>) -> Result {
    let app = &context.app;
    let until = duration.map(|text| parse_millis(text).map(|millis| app.now() + millis)).transpose()?;
    pause_state::pause(app.home(), until)?;
    let lang = app.lang(None);
    context.print_result(&json!({"paused": true, "until": until}), |_| match until {
        Some(until) => {
            let until = clock::local_stamp(until);
            let (zh, en) = (format!("注入已暂停，直到 {until}"), format!("injection paused until {until}"));
            format!("{}\n", lang.pick(zh, en))
        }
        None => {
            let (zh, en) =
                ("注入已暂停；运行 tanmi resume 恢复", "injection paused; run tanmi resume to resume it");
            format!("{}\n", lang.pick(zh, en))
        }
    });
    Ok(())
}

pub fn resume(context: &CommandContext) -> Result {
    let was_paused = pause_state::resume(context.app.home())?;
    let lang = context.app.lang(None);
    context.print_result(&json!({"paused": false, "wasPaused": was_paused}), |_| {
        let text = match was_paused {
            true => lang.pick("注入已恢复", "injection resumed"),
            false => lang.pick("注入没有暂停", "injection was not paused"),
        };
        format!("{text}\n")
    });
    Ok(())
}

/// Parses a duration such as `30m`, `2h` or `1d`.
fn parse_millis(text: &str) -> Result<i64> {
    let bad =
        || Error::BadValue { key: "--for", value: text.to_owned(), expected: String::from("30m | 2h | 1d") };
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let unit = match unit {
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad()),
    };
    match number.parse::<i64>() {
        Ok(number) if (1..=10_000).contains(&number) => Ok(number * unit),
        _ => Err(bad()),
    }
}
