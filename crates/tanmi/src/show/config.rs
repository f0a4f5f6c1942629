//! Output of `config`.

use serde_json::{Value, json};
use tanmi_app::config::Setting;
use tanmi_base::Lang;

use super::table::{self, cell, styled};
use crate::out;

pub fn table(settings: &[Setting], lang: Lang) -> String {
    let row = |setting: &Setting| {
        let about = lang.pick(setting.key.zh, setting.key.en);
        let about = match &setting.source {
            Some(path) => {
                let path = path.display();
                lang.pick(format!("{about}（来自 {path}）"), format!("{about} (set in {path})"))
            }
            None => about.to_owned(),
        };
        vec![styled(out::BOLD, setting.key.name), cell(&setting.value), styled(out::DIM, about)]
    };
    table::render_wrapped(settings.iter().map(row).collect())
}

pub fn json(setting: &Setting) -> Value {
    json!({
        "key": setting.key.name,
        "value": setting.value,
        "default": setting.key.default,
        "description": setting.key.en,
        "source": setting.source,
    })
}
