//! What the texts of mail say, and what is wrong with those that somebody wrote.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Shared};

on_both![
    placeholders_are_written_in_one_way,
    amounts_are_recognized_however_they_are_typed,
    a_sample_of_a_reminder_is_late,
    a_link_in_a_text_can_be_clicked,
];

/// A final invoice of 121 euros; returns its path.
fn invoice(client: &Client, more: Value) -> String {
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let mut body = json!({"title": "Ketel", "generate": true, "rows": rows});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id())
}

fn placeholders_are_written_in_one_way(server: Shared) {
    let client = server.client();
    let path = invoice(&client, json!({}));
    let template = |message: &str| {
        let body = json!({"send_type": "invoice", "language": "nl", "subject": "s", "message": message});
        client.post("/v1/mail-templates", body)
    };
    let send = |message: &str| {
        client.post(&format!("{path}/send"), json!({"to": "a@ster.example", "subject": "s", "message": message}))
    };
    for (message, why) in [
        ("Zie {{ data.number }}", "write it as {number}"),
        ("Voor {dueDate}", "write it as {due_date}"),
        ("Voor {due-date}", "write it as {due_date}"),
        ("Aan {{ data.client_email }}", "has {{ data.client_email }}, as flows write placeholders"),
        ("Zie {{ nummer }}", "here they are written like {number}"),
    ] {
        for refused in [template(message).expect(422), send(message).expect(422)] {
            assert_eq!(refused.faults(), ["message: invalid_format"], "{message}");
            assert!(refused.text.contains(why), "{message}: {}", refused.text);
        }
    }
    template("Zie {number} {x y}").expect(201);
    // Braces of the document itself are text.
    client.patch(&path, json!({"title": "{{ data.number }} {dueDate}"})).expect(200);
    let about = |words: &str| format!("Over {words}: {{number}}");
    send(&about("{{ data.number }} {dueDate}")).expect(200);
    assert!(client.get("/v1/mails").data()[0].is_object());
    // In flows it is the other way around.
    let step = json!({"type": "send_email", "to": "a@ster.example", "subject": "Betaald {number}",
        "body": "Factuur {{ data.number }} is betaald {x}."});
    let flow =
        json!({"name": "x", "trigger_type": "event", "trigger_key": "invoice.paid", "active": false, "steps": [step]});
    let warnings = client.post("/v1/automation/flows", flow).expect(201).json()["meta"]["warnings"].clone();
    let expected =
        "steps[0].subject: {number} is sent as it is written; placeholders in flows are written {{ data.number }}";
    assert_eq!(warnings, json!([expected]));
}

fn amounts_are_recognized_however_they_are_typed(server: Shared) {
    let client = server.client();
    let path = invoice(&client, json!({}));
    let send = |message: &str| {
        let body = json!({"to": "a@ster.example", "subject": "s", "message": message, "send_type": "invoice_rem1"});
        client.post(&format!("{path}/send"), body).expect(200).json()["meta"]["warnings"][0].clone()
    };
    assert_eq!(send("Wilt u € 121,00 overmaken?"), json!(null));
    client.post(&format!("{path}/payments"), json!({"amount": 21})).expect(201);
    assert!(send("Wilt u € 121,00 overmaken?").to_string().contains("is still to be paid"));
    assert_eq!(send("Wilt u € 100,00 van € 121,00 overmaken?"), json!(null));
    client.post(&format!("{path}/payments"), json!({})).expect(201);
    for message in ["Wilt u € 121,00 overmaken?", "Wilt u €\u{a0}121,00 overmaken?", "Wilt u €121,00 overmaken?"]
    {
        let warned = send(message).to_string();
        assert!(warned.contains("nothing to transfer for F2026-0001"), "{message}: {warned}");
    }
    assert_eq!(send("Dank u."), json!(null));
    // A template is no sentence for this mail: nobody is asked for nothing.
    let own =
        json!({"send_type": "invoice_rem1", "language": "nl", "subject": "s", "message": "Wilt u {amount} overmaken?"});
    client.post("/v1/mail-templates", own).expect(201);
    let says = client.get(&format!("{path}/send-preview?send_type=invoice_rem1")).expect(200).data();
    let about = json!({"send_type": "invoice_rem1", "document_id": path.rsplit('/').next().unwrap()});
    let shown = client.post("/v1/mail-templates/preview", about).expect(200).data();
    for message in [&says["message"], &shown["message"]] {
        let message = message.as_str().unwrap();
        assert!(message.contains("betaald") && !message.contains("Wilt u"), "{message}");
    }
}

fn a_sample_of_a_reminder_is_late(server: Shared) {
    let client = server.client();
    let shown = |kind: &str| {
        let body = json!({"send_type": kind, "subject": "s", "message": "{date} {due_date}"});
        client.post("/v1/mail-templates/preview", body).expect(200).data()["message"].clone()
    };
    assert_eq!(shown("invoice"), "4 mei 2026 18 mei 2026");
    for kind in ["invoice_rem1", "invoice_rem2", "invoice_rem3"] {
        assert_eq!(shown(kind), "13 april 2026 27 april 2026", "{kind}");
    }
    assert_eq!(shown("quote_rem1"), "4 mei 2026 3 juni 2026");
}

fn a_link_in_a_text_can_be_clicked(server: Shared) {
    let client = server.client();
    let path = invoice(&client, json!({}));
    let url = client.get(&path).data()["web_url"].as_str().unwrap().to_string();
    let message = format!("Zie {{link}}, of {url}/pdf.");
    let sent = json!({"to": "a@ster.example", "subject": "s", "message": message, "include_pdf": false});
    client.post(&format!("{path}/send"), sent).expect(200);
    let mail = client.get("/v1/mails").data()[0]["id"].as_str().unwrap().to_string();
    let html = client.get(&format!("/v1/mails/{mail}")).expect(200).data()["html"].as_str().unwrap().to_string();
    assert!(html.contains(&format!("Zie <a href=\"{url}\" style=\"color:")), "{html}");
    assert!(html.contains(&format!("\">{url}</a>, of {url}/pdf.")), "{html}");
}
