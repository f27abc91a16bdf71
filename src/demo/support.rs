//! Tickets and their conversations, in all statuses.

use serde_json::{Value, json};

use super::{DemoStep, change, make};

/// Author of a message: name and address.
type Person = (&'static str, &'static str);
const ESRA: Person = ("Esra Yilmaz", "esra@vandijk.example");
const BRAM: Person = ("Bram Willems", "bram@vandijk-installatietechniek.example");
const KARIM: Person = ("Karim Bouzid", "praktijk@praktijk-de-linde.example");
const ANNA: Person = ("Anna de Vries", "anna@bakkerij-de-ster.example");
const MARIEKE: Person = ("Marieke Jansen", "marieke@jansen-thuis.example");
const SANNE: Person = ("Sanne Vermeer", "sanne@zilveren-anker.example");
const FARID: Person = ("Farid el Amrani", "farid@vve-havenzicht.example");
const JAN: Person = ("Jan Smit", "jan@familie-smit.example");

pub(super) fn steps() -> Vec<DemoStep> {
    let mut steps = closed();
    steps.extend(under_way());
    steps
}

fn ticket(ago: i64, name: &str, (who, email): Person, client: &str, subject: &str, priority: &str) -> DemoStep {
    let body = json!({
        "subject": subject, "priority": priority, "client_name": who, "client_email": email, "client_id": client,
    });
    make(ago, name, "/v1/tickets", body)
}

/// A message from the client.
fn asks(ago: i64, ticket: &str, (name, email): Person, words: &str) -> DemoStep {
    let body = json!({"body": words, "author_name": name, "author_email": email});
    make(ago, "", &format!("/v1/tickets/@{ticket}/messages/inbound"), body)
}

/// A reply that is mailed to the client.
fn reply(ago: i64, ticket: &str, author: Person, words: &str) -> DemoStep {
    message(ago, ticket, author, json!({"type": "reply", "body": words}))
}

/// An internal note.
fn note(ago: i64, ticket: &str, author: Person, words: &str) -> DemoStep {
    message(ago, ticket, author, json!({"type": "note", "body": words}))
}

fn message(ago: i64, ticket: &str, (name, email): Person, mut body: Value) -> DemoStep {
    body["author_name"] = json!(name);
    body["author_email"] = json!(email);
    make(ago, "", &format!("/v1/tickets/@{ticket}/messages"), body)
}

fn set(ago: i64, ticket: &str, fields: Value) -> DemoStep {
    change(ago, &format!("/v1/tickets/@{ticket}"), fields)
}

fn closed() -> Vec<DemoStep> {
    vec![
        ticket(64, "wachtkamer", KARIM, "@linde", "Te warm in de wachtkamer", "low"),
        asks(64, "wachtkamer", KARIM, "Sinds de oplevering is het 's middags 24 graden. Kan dat lager?"),
        set(63, "wachtkamer", json!({"project_id": "@praktijk"})),
        reply(63, "wachtkamer", ESRA, "Hij stond nog op het schema van de oplevering. Nu op 20 graden."),
        asks(62, "wachtkamer", KARIM, "Perfect, dank u wel."),
        set(61, "wachtkamer", json!({"status": "Closed"})),
        ticket(55, "warm water", ANNA, "@ster", "Geen warm water in de bakkerij", "urgent"),
        asks(55, "warm water", ANNA, "Sinds vijf uur geen warm water, het display knippert. Kan er iemand komen?"),
        note(55, "warm water", ESRA, "Staat op het contract compleet, dus vandaag. Bram heeft na de middag ruimte."),
        reply(55, "warm water", ESRA, "Wat vervelend, Anna. Bram is er vanmiddag om één uur."),
        note(54, "warm water", BRAM, "Driewegklep vervangen en ontlucht. De oude klep ligt in de werkplaats."),
        reply(54, "warm water", BRAM, "Alles loopt weer. Zakt de druk onder 1,5 bar, bel dan meteen."),
        set(53, "warm water", json!({"status": "Closed"})),
    ]
}

fn under_way() -> Vec<DemoStep> {
    vec![
        ticket(14, "app", MARIEKE, "@jansen", "App van de thermostaat maakt geen verbinding", "normal"),
        asks(14, "app", MARIEKE, "De app zegt 'geen verbinding', maar de verwarming doet het gewoon."),
        reply(13, "app", ESRA, "Kunt u een foto van het schermpje sturen? Dan zien we welk netwerk hij zoekt."),
        note(13, "app", ESRA, "Waarschijnlijk het gastnetwerk. Wachten op de foto."),
        set(13, "app", json!({"status": "Waiting"})),
        ticket(3, "lekkage", SANNE, "@anker", "Lekkage bij de boiler op de derde verdieping", "high"),
        asks(3, "lekkage", SANNE, "Er staat water onder de boiler naast kamer 31. Wat kunnen we zelf doen?"),
        message(
            3,
            "lekkage",
            ESRA,
            json!({
                "type": "reply", "cc": "receptie@zilveren-anker.example",
                "html": "<p>Dag Sanne,</p><p>Draai de <b>blauwe kraan</b> achter de boiler dicht. Morgen om acht uur zijn we er.</p>",
            }),
        ),
        note(2, "lekkage", BRAM, "De inlaatcombinatie lekt. Nieuwe komt overmorgen, kamer 31 blijft tot dan leeg."),
        ticket(2, "storing", FARID, "@havenzicht", "Storing F28 in woning 12", "normal"),
        asks(2, "storing", FARID, "De bewoner van nummer 12 heeft code F28 op de ketel en geen verwarming."),
        set(1, "storing", json!({"priority": "high", "project_id": "@inregelen"})),
        reply(1, "storing", BRAM, "F28: de ontsteking lukt niet. Staat de gaskraan open? Anders kom ik morgen."),
        ticket(1, "beurt", JAN, "@smit", "Wanneer is de jaarlijkse onderhoudsbeurt?", "low"),
        asks(1, "beurt", JAN, "Vorig jaar was u er rond deze tijd. Ik ben op vrijdagen thuis."),
        note(1, "beurt", ESRA, "Kijken of het mee kan met de ronde in Gilze."),
    ]
}
