//! The flows of a new account. They are disabled, as examples to change and enable.

use engine::context::Ctx;
use engine::error::Result;
use engine::records;
use serde_json::{Value, json};
use store::Tx;

use crate::automation::flow;

/// Adds the flows of the library to a new account.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for body in all() {
        let mut made = flow::sent(&body)?;
        records::add(tx, ctx, &mut made)?;
    }
    Ok(())
}

fn all() -> Vec<Value> {
    vec![
        reminders(),
        thanks(),
        stale_ticket(),
        deal_without_followup(),
        silent_quote(),
        expiring_subscription(),
        won_deal(),
    ]
}

/// Continues while the invoice is late by the due date that the run started with: a later due date has its own run.
fn unpaid() -> Value {
    json!({"type": "condition", "conditions": [
        {"field": "record.payment_status", "op": "in", "value": ["partial", "overdue"]},
        {"field": "record.due_date", "op": "eq", "value": "{{ data.due_date }}"},
    ]})
}

/// Sends a reminder. If it cannot be sent because the client has no address, the run continues with the call.
fn reminder(send_type: &str) -> Value {
    json!({"type": "send_document", "send_type": send_type, "continue_on_error": true})
}

fn reminders() -> Value {
    json!({
        "name": "Payment reminders", "category": "invoicing", "active": false,
        "description": "Sends three reminders, a week apart, while the invoice is unpaid; then creates a task to call the client.",
        "trigger_type": "event", "trigger_key": "invoice.late",
        "steps": [
            {"type": "wait", "for": "P3D"},
            unpaid(),
            reminder("invoice_rem1"),
            {"type": "wait", "for": "P7D"},
            unpaid(),
            reminder("invoice_rem2"),
            {"type": "wait", "for": "P7D"},
            unpaid(),
            reminder("invoice_rem3"),
            {"type": "wait", "for": "P7D"},
            unpaid(),
            {"type": "create_task", "title": "Call about invoice {{ data.number }}", "category": "call", "deadline": "P1D",
             "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn thanks() -> Value {
    json!({
        "name": "Thank a client for the first payment", "category": "invoicing", "active": false,
        "description": "Sends a thank-you mail a day after a client's first payment.",
        "trigger_type": "event", "trigger_key": "customer.first_invoice_paid",
        "conditions": [{"field": "data.email", "op": "exists"}],
        "steps": [
            {"type": "wait", "for": "P1D"},
            {"type": "send_email", "to": "{{ data.email }}", "subject": "Thank you",
             "body": "Thank you for your first payment and for your trust in us.\n\nKind regards,\n{{ account.name }}"},
        ],
    })
}

fn stale_ticket() -> Value {
    json!({
        "name": "Follow up on a stale ticket", "category": "support", "active": false,
        "description": "Adds a note to the ticket and creates a task for today when there has been no message for days.",
        "trigger_type": "event", "trigger_key": "ticket.stale",
        "steps": [
            {"type": "add_ticket_message", "message_type": "note", "body": "There has been no message on this ticket for several days."},
            {"type": "create_task", "title": "Follow up on ticket {{ data.number }}: {{ data.subject }}", "deadline": "P0D",
             "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn deal_without_followup() -> Value {
    json!({
        "name": "Follow up on a deal", "category": "sales", "active": false,
        "description": "Creates a task to call the client for a deal without an open task.",
        "trigger_type": "event", "trigger_key": "deal.no_followup",
        "steps": [
            {"type": "create_task", "title": "Follow up: {{ data.title }}", "category": "call", "deadline": "P2D",
             "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn silent_quote() -> Value {
    json!({
        "name": "Follow up on an unanswered quote", "category": "sales", "active": false,
        "description": "Sends a reminder of an unanswered quote after your approval.",
        "trigger_type": "event", "trigger_key": "quote.silent",
        "steps": [
            {"type": "approval", "message": "Send a reminder of quote {{ data.number }}?"},
            {"type": "condition", "conditions": [{"field": "record.payment_status", "op": "eq", "value": "open"}]},
            {"type": "send_document", "send_type": "quote_rem1"},
        ],
    })
}

fn expiring_subscription() -> Value {
    json!({
        "name": "Renew a subscription", "category": "subscriptions", "active": false,
        "description": "Creates a task to discuss renewal before a subscription ends.",
        "trigger_type": "event", "trigger_key": "subscription.expiring",
        "steps": [
            {"type": "create_task", "title": "Renew {{ data.number }} ({{ data.title }}), which ends on {{ data.end_date }}",
             "category": "call", "deadline": "P7D", "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn won_deal() -> Value {
    json!({
        "name": "Welcome a new client", "category": "sales", "active": false,
        "description": "Creates the tasks of the first weeks when a deal is won.",
        "trigger_type": "event", "trigger_key": "deal.won",
        "steps": [
            {"type": "create_task", "title": "Send the welcome mail for {{ data.title }}", "deadline": "P1D",
             "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
            {"type": "create_task", "title": "Schedule the first meeting for {{ data.title }}", "category": "meeting", "deadline": "P7D",
             "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
            {"type": "wait", "for": "P30D"},
            {"type": "create_task", "title": "Check in on progress: {{ data.title }}", "category": "call", "deadline": "P2D",
             "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
        ],
    })
}
