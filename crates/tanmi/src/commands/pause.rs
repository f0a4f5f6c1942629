//! `tanmi pause` and `tanmi resume`

use serde_json::json;
use tanmi_app::Error;
use tanmi_base::{Millis, clock};
use tanmi_session::pause as pause_state;

use super::{CommandContext, Result};

pub fn pause(context: &CommandContext, duration: Option<&str>) -> Result {
    let app = &context.app;
    let until = duration.map(|text| parse_pause(text).map(|millis| app.now() + millis)).transpose()?;
    pause_state::pause(app.home(), until)?;
    let lang = app.lang();
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
    let lang = context.app.lang();
    context.print_result(&json!({"paused": false, "wasPaused": was_paused}), |_| {
        let text = match was_paused {
            true => lang.pick("注入已恢复", "injection resumed"),
            false => lang.pick("注入没有暂停", "injection was not paused"),
        };
        format!("{text}\n")
    });
    Ok(())
}

fn parse_pause(text: &str) -> Result<Millis> {
    let bad =
        || Error::BadValue { key: "--for", value: text.to_owned(), expected: String::from("30m | 2h | 1d") };
    clock::parse_duration(text).filter(|millis| *millis > 0).ok_or_else(bad)
}
