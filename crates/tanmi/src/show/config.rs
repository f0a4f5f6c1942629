//! Output of `config`.

use serde_json::{Value, json};
use tanmi_app::config::Setting;
use tanmi_base::Lang;

use super::table::{self, cell, styled};
use crate::out;

pub fn table(settings: &[Setting], lang: Lang) -> String {
    let row = |setting: &Setting| {
        let source = match &setting.source {
            Some(path) => path.display().to_string(),
            None => lang.pick("默认", "default").to_owned(),
        };
        vec![
            styled(out::BOLD, setting.key.name),
            cell(&setting.value),
            styled(out::DIM, lang.pick(setting.key.zh, setting.key.en)),
            styled(out::DIM, source),
        ]
    };
    table::render(&settings.iter().map(row).collect::<Vec<_>>(), 70)
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
