//! `tanmi memory …`

use serde_json::json;
use tanmi_app::Error;
use tanmi_app::memory::{MemoryQuery, NewFact, NewSummary};

use super::{CommandContext, Result, file_or_stdin, text_or_stdin};
use crate::cli::{LexiconCommand, MemoryCommand, MemoryFilterArgs, ModelCommand, SaveFactArgs};
use crate::out::progress::ProgressBar;
use crate::{out, show};

pub fn run(context: &CommandContext, command: MemoryCommand) -> Result {
    let app = &context.app;
    let lang = app.lang();
    match command {
        MemoryCommand::SaveFact(args) => save_fact(context, args)?,
        MemoryCommand::SaveSummary { topic, summary, decisions, todos, session } => {
            let summary = text_or_stdin("summary", summary)?;
            let session = context.caller_session(session.as_deref())?;
            let saved = app.memory.save_summary(NewSummary { topic, summary, decisions, todos, session })?;
            context.print_result(&saved, |saved| show::memory::saved(saved, &[], lang));
        }
        MemoryCommand::Search { query, filter, limit } => {
            let found = app.memory.search(&query.join(" "), &memory_query(context, filter, limit, 0)?)?;
            context.print_read(&found, |found| show::memory::results(found, lang));
        }
        MemoryCommand::List { filter, limit, skip } => {
            let listed = app.memory.list(&memory_query(context, filter, limit, skip)?)?;
            context.print_read(&listed, |listed| show::memory::results(listed, lang));
        }
        MemoryCommand::Stale { limit } => {
            let stale = app.memory.stale(limit)?;
            context.print_result(&stale, |stale| show::memory::stale(stale, lang));
        }
        MemoryCommand::Show { id } => {
            let memory = app.memory.show(&id)?;
            context.print_result(&memory, |memory| show::memory::full(memory, lang));
        }
        MemoryCommand::Edit { id, text } => {
            let saved =
                app.memory.edit(&id, text_or_stdin("content", text)?, context.caller_session(None)?)?;
            context.print_result(&saved, |saved| show::memory::saved(saved, &[id], lang));
        }
        MemoryCommand::Forget { ids } => {
            let forgotten = app.memory.forget(&ids)?;
            context.print_result(&forgotten, |forgotten| {
                show::memory::marked(forgotten, lang.pick("已忘记", "forgotten"), lang)
            });
        }
        MemoryCommand::Restore { ids } => {
            let restored = app.memory.restore(&ids)?;
            context.print_result(&restored, |restored| {
                show::memory::marked(restored, lang.pick("已恢复", "restored"), lang)
            });
        }
        MemoryCommand::Promote { ids } => {
            let promoted = app.memory.promote(&ids)?;
            context.print_result(&promoted, |promoted| {
                let word = lang.pick("已移到用户记忆", "moved to your memory");
                show::memory::marked(promoted, word, lang)
            });
        }
        MemoryCommand::Import { file } => {
            let lines = file_or_stdin(&file, u64::MAX)?;
            let mut progress = ProgressBar::new(lang.pick("索引", "indexing"));
            let imported = app
                .memory
                .import(&String::from_utf8_lossy(&lines), &mut |done, all| progress.show(done, all))?;
            progress.end();
            context.print_result(&imported, |imported| show::memory::imported(imported, lang));
            // A file without a single valid memory is probably the wrong file.
            if imported.bad_lines > 0 && imported.added + imported.known == 0 {
                context.failed.set(true);
            }
        }
        MemoryCommand::Export { all } => {
            let lines = app.memory.export(all)?;
            if !lines.is_empty() {
                out::raw(format!("{}\n", lines.join("\n")).as_bytes());
            }
        }
        MemoryCommand::Ingest { paths } => {
            let ingested = app.memory.ingest(&paths)?;
            context.print_result(&ingested, |ingested| show::memory::ingested(ingested, lang));
        }
        MemoryCommand::Model(command) => {
            let value = match command {
                ModelCommand::Add { dir } => app.memory.add_model(&dir)?,
                ModelCommand::Remove => json!({"removed": app.memory.remove_model()?}),
                ModelCommand::Show => app.memory.show_model(),
            };
            context.print_result(&value, |value| show::memory::model(value, lang));
        }
        MemoryCommand::Lexicon(command) => run_lexicon(context, command)?,
        MemoryCommand::Sync => {
            let mut progress = ProgressBar::new(lang.pick("索引", "indexing"));
            let synced = app.memory.sync(&mut |done, all| progress.show(done, all))?;
            progress.end();
            let value = json!({"added": synced.added, "badLines": synced.bad_lines});
            context.print_result(&value, |_| show::memory::synced(&synced, lang));
        }
        MemoryCommand::Stats => {
            let stats = app.memory.stats()?;
            context.print_result(&stats, |stats| show::memory::stats(stats, lang));
        }
    }
    Ok(())
}

fn run_lexicon(context: &CommandContext, command: LexiconCommand) -> Result {
    let app = &context.app;
    let lang = app.lang();
    match command {
        LexiconCommand::Add { file } => {
            let mut progress = ProgressBar::new(lang.pick("读取", "reading"));
            let added = app.memory.add_lexicon(&file, &mut |done, all| progress.show(done, all));
            progress.end();
            context.print_result(&added?, |added| show::memory::lexicon_added(added, lang));
        }
        LexiconCommand::List => {
            let value = json!({"lexicons": app.memory.lexicons()?});
            context.print_result(&value, |value| show::memory::lexicons(value, lang));
        }
        LexiconCommand::Remove { name } => {
            app.memory.remove_lexicon(&name)?;
            context.print_result(&json!({"removed": name}), |_| {
                format!("{}\n", lang.pick("已移除词典", "dictionary removed"))
            });
        }
    }
    Ok(())
}

fn save_fact(context: &CommandContext, args: SaveFactArgs) -> Result {
    let content = match args.file {
        Some(path) => std::fs::read_to_string(&path).map_err(Error::io(&path))?,
        None => text_or_stdin("content", args.text.unwrap_or_else(|| String::from("-")))?,
    };
    let entities = args.entities.iter().flat_map(|list| list.split([',', '，'])).map(str::trim);
    let saved = context.app.memory.save(NewFact {
        content,
        memory_type: Some(args.memory_type),
        entities: entities.filter(|one| !one.is_empty()).map(String::from).collect(),
        confidence: args.confidence,
        session: context.caller_session(args.session.as_deref())?,
        supersedes: args.supersedes.clone(),
        paths: args.paths,
        scope: Some(args.scope),
    })?;
    context.print_result(&saved, |saved| show::memory::saved(saved, &args.supersedes, context.app.lang()));
    Ok(())
}

fn memory_query(
    context: &CommandContext,
    filter: MemoryFilterArgs,
    limit: usize,
    skip: usize,
) -> Result<MemoryQuery> {
    Ok(MemoryQuery {
        memory_type: filter.memory_type,
        session: filter.session.map(|named| context.app.resolver.session_id(&named)).transpose()?,
        since: filter.since,
        until: filter.until,
        scope: filter.scope,
        all: filter.all,
        limit,
        skip,
    })
}
