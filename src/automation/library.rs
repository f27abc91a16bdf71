//! The flows of a new account, in its language. They are disabled, as examples to change and enable.

use engine::context::Ctx;
use engine::error::Result;
use engine::log::Event;
use engine::record::Record;
use engine::records;
use serde_json::{Value, json};
use store::Tx;

use crate::automation::flow::{self, Flow};
use crate::settings::{Language, Settings};

/// Adds the flows of the library to a new account.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for body in all(Settings::of(tx, ctx)?.language) {
        let mut made = flow::sent(&body)?;
        records::add(tx, ctx, &mut made)?;
    }
    Ok(())
}

/// Translates the flows of the library after a change of the account's language: those that are disabled and as they were.
pub fn follow_language(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    if event.name != "settings.updated" {
        return Ok(());
    }
    let settings: Value = serde_json::from_str(event.data).unwrap_or_default();
    let language = settings["language"].as_str().and_then(Language::from_wire).unwrap_or_default();
    let sql = format!("{} WHERE account_id = $1 AND active = 0", Flow::sql().select);
    let disabled = tx.all(&sql, &[ctx.account.into()], Flow::from_row)?;
    for other in Language::ALL.iter().filter(|other| **other != language) {
        for (old, new) in all(*other).iter().zip(all(language)) {
            let (old, new) = (flow::sent(old)?, flow::sent(&new)?);
            let is_same = |flow: &&Flow| flow.name == old.name && flow.definition == old.definition;
            let Some(before) = disabled.iter().find(is_same) else { continue };
            let mut flow =
                Flow { name: new.name, description: new.description, definition: new.definition, ..before.clone() };
            records::change(tx, ctx, before, &mut flow, "updated")?;
        }
    }
    Ok(())
}

fn all(language: Language) -> Vec<Value> {
    let words = Say(language);
    vec![
        reminders(&words),
        thanks(&words),
        stale_ticket(&words),
        deal_without_followup(&words),
        silent_quote(&words),
        expiring_subscription(&words),
        won_deal(&words),
        given_up_mail(&words, "mail.bounced"),
        given_up_mail(&words, "mail.failed"),
    ]
}

/// Picks the text of a language.
struct Say(Language);

impl Say {
    fn say(&self, english: &'static str, dutch: &'static str) -> &'static str {
        match self.0 {
            Language::English => english,
            Language::Dutch => dutch,
        }
    }
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

fn reminders(words: &Say) -> Value {
    json!({
        "name": words.say("Payment reminders", "Betalingsherinneringen"), "category": "invoicing", "active": false,
        "description": words.say(
            "Sends three reminders, a week apart, while the invoice is unpaid; then creates a task to call the client.",
            "Verstuurt drie herinneringen, telkens een week later, zolang de factuur niet is betaald; maakt daarna een taak om de klant te bellen.",
        ),
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
            {"type": "create_task", "title": words.say("Call about invoice {{ data.number }}", "Bel over factuur {{ data.number }}"),
             "category": "call", "deadline": "P1D", "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn thanks(words: &Say) -> Value {
    json!({
        "name": words.say("Thank a client for the first payment", "Bedank een klant voor de eerste betaling"),
        "category": "invoicing", "active": false,
        "description": words.say(
            "Sends a thank-you mail a day after a client's first payment.",
            "Verstuurt een dag na de eerste betaling van een klant een bedankmail.",
        ),
        "trigger_type": "event", "trigger_key": "customer.first_invoice_paid",
        "conditions": [{"field": "data.email", "op": "exists"}],
        "steps": [
            {"type": "wait", "for": "P1D"},
            {"type": "send_email", "to": "{{ data.email }}", "subject": words.say("Thank you", "Hartelijk dank"),
             "body": words.say(
                "Thank you for your first payment and for your trust in us.\n\nKind regards,\n{{ account.name }}",
                "Hartelijk dank voor uw eerste betaling en voor het vertrouwen in ons.\n\nMet vriendelijke groet,\n{{ account.name }}",
             )},
        ],
    })
}

fn stale_ticket(words: &Say) -> Value {
    json!({
        "name": words.say("Follow up on a stale ticket", "Volg een stilgevallen ticket op"), "category": "support", "active": false,
        "description": words.say(
            "Adds a note to the ticket and creates a task for today when there has been no message for days.",
            "Plaatst een notitie bij het ticket en maakt een taak voor vandaag als er dagenlang geen bericht is geweest.",
        ),
        "trigger_type": "event", "trigger_key": "ticket.stale",
        "steps": [
            {"type": "add_ticket_message", "message_type": "note", "body": words.say(
                "There has been no message on this ticket for several days.",
                "Er is al enkele dagen geen bericht in dit ticket geplaatst.",
            )},
            {"type": "create_task", "title": words.say(
                "Follow up on ticket {{ data.number }}: {{ data.subject }}",
                "Volg ticket {{ data.number }} op: {{ data.subject }}",
             ), "deadline": "P0D", "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn deal_without_followup(words: &Say) -> Value {
    json!({
        "name": words.say("Follow up on a deal", "Volg een deal op"), "category": "sales", "active": false,
        "description": words.say(
            "Creates a task to call the client for a deal without an open task.",
            "Maakt een taak om de klant te bellen voor een deal zonder openstaande taak.",
        ),
        "trigger_type": "event", "trigger_key": "deal.no_followup",
        "steps": [
            {"type": "create_task", "title": words.say("Follow up: {{ data.title }}", "Opvolgen: {{ data.title }}"), "category": "call",
             "deadline": "P2D", "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn silent_quote(words: &Say) -> Value {
    json!({
        "name": words.say("Follow up on an unanswered quote", "Volg een onbeantwoorde offerte op"), "category": "sales", "active": false,
        "description": words.say(
            "Sends a reminder of an unanswered quote after your approval.",
            "Verstuurt na uw goedkeuring een herinnering aan een onbeantwoorde offerte.",
        ),
        "trigger_type": "event", "trigger_key": "quote.silent",
        "steps": [
            {"type": "approval", "message": words.say(
                "Send a reminder of quote {{ data.number }}?",
                "Herinnering aan offerte {{ data.number }} versturen?",
            )},
            {"type": "condition", "conditions": [{"field": "record.payment_status", "op": "eq", "value": "open"}]},
            {"type": "send_document", "send_type": "quote_rem1"},
        ],
    })
}

fn expiring_subscription(words: &Say) -> Value {
    json!({
        "name": words.say("Renew a subscription", "Verleng een abonnement"), "category": "subscriptions", "active": false,
        "description": words.say(
            "Creates a task to discuss renewal before a subscription ends.",
            "Maakt een taak om de verlenging te bespreken voordat een abonnement afloopt.",
        ),
        "trigger_type": "event", "trigger_key": "subscription.expiring",
        "steps": [
            {"type": "create_task", "title": words.say(
                "Renew {{ data.number }} ({{ data.title }}), which ends on {{ data.end_date }}",
                "Verleng {{ data.number }} ({{ data.title }}), loopt af op {{ data.end_date }}",
             ), "category": "call", "deadline": "P7D", "client_id": "{{ data.client_id }}"},
        ],
    })
}

fn won_deal(words: &Say) -> Value {
    json!({
        "name": words.say("Welcome a new client", "Verwelkom een nieuwe klant"), "category": "sales", "active": false,
        "description": words.say(
            "Creates the tasks of the first weeks when a deal is won.",
            "Maakt de taken van de eerste weken als een deal is gewonnen.",
        ),
        "trigger_type": "event", "trigger_key": "deal.won",
        "steps": [
            {"type": "create_task", "title": words.say(
                "Send the welcome mail for {{ data.title }}",
                "Verstuur de welkomstmail voor {{ data.title }}",
             ), "deadline": "P1D", "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
            {"type": "create_task", "title": words.say(
                "Schedule the first meeting for {{ data.title }}",
                "Plan het eerste overleg voor {{ data.title }}",
             ), "category": "meeting", "deadline": "P7D", "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
            {"type": "wait", "for": "P30D"},
            {"type": "create_task", "title": words.say(
                "Check in on progress: {{ data.title }}",
                "Vraag naar de voortgang: {{ data.title }}",
             ), "category": "call", "deadline": "P2D", "deal_id": "{{ data.id }}", "client_id": "{{ data.client_id }}"},
        ],
    })
}

/// Tells the owner of a mail that did not arrive: with a task, because another mail may fail as well, and by mail. There is no
/// mail about a mail of a flow, such as this one, or a wrong address of the owner would cause one after the other. The reason is
/// an English sentence with the words of the mail server, so it stands apart.
fn given_up_mail(words: &Say, event: &str) -> Value {
    let is_refused = event == "mail.bounced";
    let name = match is_refused {
        true => words.say("Tell the owner about a refused mail", "Meld een geweigerde mail"),
        false => words.say("Tell the owner about a mail that failed", "Meld een mail die niet kon worden bezorgd"),
    };
    let description = match is_refused {
        true => words.say(
            "Creates a task for today and mails the owner when a mail server refuses a mail.",
            "Maakt een taak voor vandaag en mailt de eigenaar als een mailserver een mail weigert.",
        ),
        false => words.say(
            "Creates a task for today and mails the owner when a mail could not be delivered in a day.",
            "Maakt een taak voor vandaag en mailt de eigenaar als een mail een dag lang niet kon worden bezorgd.",
        ),
    };
    json!({
        "name": name, "category": "mail", "active": false, "description": description,
        "trigger_type": "event", "trigger_key": event,
        "steps": [
            {"type": "create_task", "title": words.say(
                "The mail about {{ data.number }} did not arrive",
                "De mail over {{ data.number }} is niet aangekomen",
             ), "notes": words.say(
                "{{ data.mail.recipient }}: {{ data.mail.reason }}",
                "{{ data.mail.recipient }}\n\nTechnische melding, in het Engels:\n{{ data.mail.reason }}",
             ), "deadline": "P0D", "client_id": "{{ data.client_id }}"},
            {"type": "condition", "conditions": [{"field": "data.mail.send_type", "op": "ne", "value": "flow"}]},
            {"type": "send_email", "to": "{{ account.owner_email }}", "subject": words.say(
                "The mail about {{ data.number }} did not arrive",
                "De mail over {{ data.number }} is niet aangekomen",
             ), "body": words.say(
                "The mail \"{{ data.mail.subject }}\" to {{ data.mail.recipient }} did not arrive.\n\n{{ data.mail.reason }}\n\nCorrect the address and send it again.",
                "De mail “{{ data.mail.subject }}” aan {{ data.mail.recipient }} is niet aangekomen.\n\nVerbeter het adres en verstuur de mail opnieuw.\n\nTechnische melding, in het Engels:\n{{ data.mail.reason }}",
             )},
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automation::lint::{self, Lists, Subject};

    #[test]
    fn every_flow_exists_in_both_languages() {
        let (english, dutch) = (all(Language::English), all(Language::Dutch));
        assert_eq!(english.len(), dutch.len());
        for (english, dutch) in english.iter().zip(&dutch) {
            for field in ["name", "description"] {
                assert_ne!(english[field], dutch[field]);
            }
            for field in ["trigger_key", "category", "conditions"] {
                assert_eq!(english[field], dutch[field]);
            }
            let steps = |flow: &Value| flow["steps"].as_array().cloned().unwrap_or_default();
            assert_eq!(steps(english).len(), steps(dutch).len());
            for (english, dutch) in steps(english).iter().zip(steps(dutch)) {
                assert_eq!(english["type"], dutch["type"]);
                for text in ["title", "message", "subject", "body"] {
                    assert!(english[text].is_null() || english[text] != dutch[text], "{english} {dutch}");
                }
            }
        }
    }

    #[test]
    fn no_flow_has_a_warning() {
        crate::registry::install();
        for flow in all(Language::English).iter().chain(&all(Language::Dutch)) {
            let subject = Subject::of_event(flow["trigger_key"].as_str().unwrap());
            let warnings = lint::of(&subject, &Lists::default(), &flow["conditions"], &flow["steps"]);
            assert_eq!(warnings, Vec::<String>::new(), "{}", flow["name"]);
        }
    }
}
