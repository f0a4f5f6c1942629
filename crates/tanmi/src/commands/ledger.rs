//! `tanmi ledger`

use tanmi_app::ledger::LedgerFilter;

use super::{Context, Result};
use crate::cli::LedgerArgs;
use crate::show;

pub fn run(context: &Context, args: LedgerArgs) -> Result {
    let view = context.app.ledger(&LedgerFilter {
        session: args.session,
        event: args.event,
        platform: args.platform,
        rule: args.rule,
        since: args.since.or_else(|| args.day.clone()),
        until: args.until.or(args.day),
        limit: args.limit,
        texts: args.text,
    })?;
    context.answer(&view, |view| show::ledger::view(view, context.app.lang(None)));
    Ok(())
}
