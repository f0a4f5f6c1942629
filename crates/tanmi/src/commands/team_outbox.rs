//! `tanmi team outbox`

use tanmi_app::team::OutboxList;
use tanmi_base::Lang;

use super::{CommandContext, Result};
use crate::cli::OutboxCommand;
use crate::out::{self, paint};
use crate::show::table::{self, cell, shrinkable, styled};

pub fn run(context: &CommandContext, command: OutboxCommand) -> Result {
    let (team, lang) = (&context.app.team, context.app.lang());
    match command {
        OutboxCommand::List { state, limit } => {
            let list = team.list_outbox(state.as_deref(), limit)?;
            context.print_result(&list, |list| list_text(list, lang));
        }
        OutboxCommand::Retry { ids } => {
            let result = team.retry_outbox(&ids)?;
            context.print_result(&result, |result| {
                lang.pick(
                    format!(
                        "重新发送 {}，已发送 {}，等待 {}，被拒绝 {}\n",
                        result.retried, result.delivered, result.queued, result.undelivered
                    ),
                    format!(
                        "{} retried: {} delivered, {} waiting, {} refused\n",
                        result.retried, result.delivered, result.queued, result.undelivered
                    ),
                )
            });
        }
        OutboxCommand::Discard { ids } => {
            let result = team.discard_outbox(&ids)?;
            context.print_result(&result, |result| {
                let count = result.discarded;
                lang.pick(format!("已删除 {count} 次写入\n"), format!("{count} discarded\n"))
            });
        }
    }
    Ok(())
}

fn list_text(list: &OutboxList, lang: Lang) -> String {
    if list.entries.is_empty() {
        return format!(
            "{}\n",
            paint(out::DIM, lang.pick("没有等待发送的写入", "nothing waits for the server"))
        );
    }
    let rows: Vec<Vec<table::Cell>> = list
        .entries
        .iter()
        .map(|entry| {
            let state = match entry.state {
                "queued" => styled(out::DIM, lang.pick("等待", "waiting")),
                _ => styled(out::YELLOW, entry.message.as_deref().unwrap_or_default()),
            };
            vec![
                styled(out::DIM, &entry.at),
                cell(entry.kind),
                shrinkable(styled(out::BOLD, &entry.text)),
                state,
                styled(out::DIM, &entry.id),
            ]
        })
        .collect();
    let mut text = table::render(&rows, 90);
    let (shown, total) = (list.entries.len(), list.total);
    if shown < total {
        let more =
            lang.pick(format!("显示 {shown} 条，共 {total} 条"), format!("showing {shown} of {total}"));
        text.push_str(&format!("{}\n", paint(out::DIM, &more)));
    }
    text
}
