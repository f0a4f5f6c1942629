//! `tanmi config`

use tanmi_app::Error;
use tanmi_app::config::{self, Setting};
use tanmi_app::trust::Trust;

use super::{CommandContext, Result};
use crate::cli::ConfigCommand;
use crate::{out, show};

pub fn run(context: &CommandContext, command: ConfigCommand) -> Result {
    let app = &context.app;
    let lang = app.lang();
    let settings = || {
        let trust = Trust::new(app.home()).of_project(app.project());
        let (settings, errors) = config::read_all(app.home(), Some(&trust));
        for ignored in errors.iter().filter(|error| matches!(error, Error::NotAgreed { .. })) {
            out::labelled(out::YELLOW, "警告", "warning", &ignored.message(lang), lang);
        }
        settings
    };
    match command {
        ConfigCommand::List => print(context, &settings()),
        ConfigCommand::Get { key } => {
            let key = config::find(&key)?;
            let one: Vec<Setting> =
                settings().into_iter().filter(|setting| setting.key.name == key.name).collect();
            print(context, &one);
        }
        ConfigCommand::Set { key, value, for_project } => {
            let project = for_project.then(|| app.project());
            let setting = config::set(app.home(), project, &key, &value)?;
            if for_project {
                // Warns if the file does not count.
                settings();
            }
            context.print_result(&show::config::json(&setting), |_| show::config::table(&[setting], lang));
        }
        ConfigCommand::Unset { key, for_project } => {
            let key = config::unset(app.home(), for_project.then(|| app.project()), &key)?;
            let now = settings().into_iter().find(|setting| setting.key.name == key.name);
            if let Some(setting) = now {
                context
                    .print_result(&show::config::json(&setting), |_| show::config::table(&[setting], lang));
            }
        }
    }
    Ok(())
}

fn print(context: &CommandContext, settings: &[Setting]) {
    let json: Vec<_> = settings.iter().map(show::config::json).collect();
    context.print_result(&json, |_| show::config::table(settings, context.app.lang()));
}
