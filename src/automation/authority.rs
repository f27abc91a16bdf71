//! Lets runs act with the scopes that the author of their flow has at that time. Each version of a flow has its author:
//! whoever saved it, or adopted it later.

use engine::authors::Authority;
use engine::context::Ctx;
use engine::error::Result;
use engine::record::Record;
use engine::records;
use engine::who::Who;
use store::Tx;

use super::author;
use super::definition::Definition;
use super::flow::{Flow, TriggerType};
use super::needs;
use super::run::Run;

/// Returns the context in which a run acts. If its author may no longer do what the flow does, the run fails, the flow is
/// stopped, and there is none.
pub fn acting(tx: &mut Tx, ctx: &Ctx, own: Ctx, run: &mut Run, definition: &Definition) -> Result<Option<Ctx>> {
    if run.reads.is_empty() {
        run.reads = needs::to_see(&run.entity_type, definition);
    }
    // A cancelled run, and one that is done, only end.
    if run.cancel_requested || run.place() >= definition.steps.len() {
        return Ok(Some(own));
    }
    let (author, name) = author::find(tx, ctx, &run.flow_id.0, run.flow_version)?;
    let authority = author.authority(tx, ctx)?;
    let reason = match &authority {
        Authority::Ended(reason) => Some(reason.clone()),
        _ => {
            let event = if run.trigger_type == TriggerType::Schedule.wire() { "" } else { run.trigger_key.as_str() };
            let missing = needs::missing(&authority, event, definition);
            (!missing.is_empty())
                .then(|| format!("its author does not have the required scopes: {}", missing.join(", ")))
        }
    };
    if let Some(reason) = reason {
        run.fail(ctx, format!("The flow was stopped: {reason}."));
        stop(tx, ctx, run, &format!("The flow was stopped: {reason}. Adopt it to enable it again."))?;
        return Ok(None);
    }
    // A caller may fire any key about any record.
    if let Some(scope) = needs::to_read(&run.entity_type).filter(|scope| !authority.may(scope)) {
        run.fail(
            ctx,
            format!("The author of the flow does not have the scope '{scope}' to read the record of the event."),
        );
        return Ok(None);
    }
    Ok(Some(Ctx { key: authority.key(), actor: who(&run.flow_id.0, &name), ..own }))
}

/// Returns the context in which the templates of a run are rendered outside a transaction: they contain what its author may see.
pub fn reading(tx: &mut Tx, ctx: Ctx, run: &Run) -> Result<Ctx> {
    let (author, _) = author::find(tx, &ctx, &run.flow_id.0, run.flow_version)?;
    let key = author.authority(tx, &ctx)?.key();
    Ok(Ctx { key, ..ctx })
}

/// Returns a flow as an actor.
pub fn who(id: &str, name: &str) -> Who {
    Who::other("flow", id, name)
}

/// Stops the flow of a run, unless somebody has saved another version of it since.
fn stop(tx: &mut Tx, ctx: &Ctx, run: &Run, reason: &str) -> Result<()> {
    let values = [ctx.account.into(), (&run.flow_id.0).into()];
    let Some(before) = tx.first(&Flow::sql().get, &values, Flow::from_row)? else { return Ok(()) };
    if before.definition_version != run.flow_version || !before.stopped_reason.is_empty() {
        return Ok(());
    }
    let mut flow = before.clone();
    flow.active = false;
    flow.stopped_reason = reason.to_string();
    records::change(tx, ctx, &before, &mut flow, "stopped")
}
