//! Projects with their hours, tasks, and notes about all of it.

use serde_json::{Value, json};

use super::{DemoStep, act, change, make};

pub(super) fn steps() -> Vec<DemoStep> {
    let mut steps = projects();
    for (number, entry) in (1..).zip(HOURS) {
        steps.extend(hours(&format!("hours {number}"), entry));
    }
    steps.extend(corrected());
    steps.extend(tasks());
    steps.extend(notes());
    steps
}

fn projects() -> Vec<DemoStep> {
    let project = |ago, name, body: Value| make(ago, name, "/v1/projects", body);
    vec![
        project(
            99,
            "praktijk",
            json!({
                "name": "Cv-installatie praktijk De Linde", "client_id": "@linde", "budget": 9240,
                "start_date": "@-90", "end_date": "@-68",
            }),
        ),
        change(90, "/v1/projects/@praktijk", json!({"status": "active"})),
        change(68, "/v1/projects/@praktijk", json!({"status": "completed"})),
        project(
            74,
            "bakkerij",
            json!({
                "name": "Warmtepomp Bakkerij De Ster", "client_id": "@ster", "budget": 14850,
                "start_date": "@-40", "end_date": "@+8",
            }),
        ),
        change(40, "/v1/projects/@bakkerij", json!({"status": "active"})),
        project(
            58,
            "badkamer",
            json!({
                "name": "Badkamer mevrouw Jansen", "client_id": "@jansen", "budget": 11600,
                "start_date": "@-30", "end_date": "@-10",
            }),
        ),
        change(30, "/v1/projects/@badkamer", json!({"status": "active"})),
        change(18, "/v1/projects/@badkamer", json!({"status": "on_hold", "end_date": "@+15"})),
        project(
            5,
            "inregelen",
            json!({
                "name": "Inregelen van 48 woningen Havenzicht", "client_id": "@havenzicht", "budget": 4200,
                "start_date": "@+10", "end_date": "@+30",
            }),
        ),
    ]
}

/// The status of an entry.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Draft,
    Submitted,
    Approved,
    Rejected,
}

/// Project, working days ago, hours, activity, and status.
type Entry = (&'static str, i64, &'static str, &'static str, Fate);

const HOURS: &[Entry] = &[
    ("praktijk", 90, "7.5", "Oude ketels verwijderd", Fate::Approved),
    ("praktijk", 89, "8", "Leidingwerk", Fate::Approved),
    ("praktijk", 88, "8", "Leidingwerk", Fate::Approved),
    ("praktijk", 85, "6", "Rookgasafvoer", Fate::Approved),
    ("praktijk", 82, "7.5", "Ketels opgehangen en aangesloten", Fate::Approved),
    ("praktijk", 81, "4.5", "Inregelen", Fate::Approved),
    ("praktijk", 72, "1.25", "Oplevering", Fate::Approved),
    ("bakkerij", 40, "3", "Opname en werktekening", Fate::Approved),
    ("bakkerij", 32, "8", "Fundatie en doorvoeren", Fate::Approved),
    ("bakkerij", 31, "8", "Fundatie en doorvoeren", Fate::Approved),
    ("badkamer", 30, "8", "Sloopwerk", Fate::Approved),
    ("badkamer", 29, "7", "Leidingwerk", Fate::Approved),
    ("badkamer", 27, "9.5", "Leidingwerk", Fate::Rejected),
    ("bakkerij", 24, "7.5", "Buitenunit geplaatst", Fate::Approved),
    ("badkamer", 19, "0.75", "Overleg over de tegels", Fate::Draft),
    ("bakkerij", 9, "6", "Leidingwerk", Fate::Submitted),
    ("bakkerij", 8, "7.75", "Leidingwerk", Fate::Submitted),
    ("bakkerij", 4, "2.5", "Elektra", Fate::Rejected),
    ("bakkerij", 1, "4", "Elektra", Fate::Draft),
];

/// An entry is submitted a working day later, and reviewed the day after.
fn hours(name: &str, (project, ago, hours, activity, fate): &Entry) -> Vec<DemoStep> {
    let path = format!("/v1/projects/@{project}/hours");
    let user = if *project == "praktijk" || *fate == Fate::Submitted { "@colleague" } else { "@owner" };
    let mut steps = vec![make(*ago, name, &path, json!({"hours": hours, "activity_name": activity, "user_id": user}))];
    if *fate != Fate::Draft {
        steps.push(act(ago - 1, &format!("{path}/@{name}/submit")));
    }
    match fate {
        Fate::Approved => steps.push(act(ago - 2, &format!("{path}/@{name}/approve"))),
        Fate::Rejected => steps.push(reject(ago - 2, &format!("{path}/@{name}"))),
        Fate::Draft | Fate::Submitted => {}
    }
    steps
}

fn reject(ago: i64, entry: &str) -> DemoStep {
    make(ago, "", &format!("{entry}/reject"), json!({"reason": "Komt niet overeen met de planning."}))
}

/// Hours that were rejected, corrected and approved.
fn corrected() -> Vec<DemoStep> {
    let path = "/v1/projects/@badkamer/hours";
    let own = "/v1/projects/@badkamer/hours/@corrected";
    vec![
        make(26, "corrected", path, json!({"minutes": 600, "activity_name": "Afvoeren verlegd", "user_id": "@owner"})),
        act(25, &format!("{own}/submit")),
        reject(24, own),
        change(23, own, json!({"minutes": 390})),
        act(23, &format!("{own}/submit")),
        act(22, &format!("{own}/approve")),
    ]
}

fn tasks() -> Vec<DemoStep> {
    let task = |ago, name, body: Value| make(ago, name, "/v1/tasks", body);
    vec![
        task(
            99,
            "opname",
            json!({
                "title": "Opname bij de bakkerij", "category": "meeting", "deadline": "@-95", "duration_minutes": 90,
                "client_id": "@ster", "deal_id": "@deal bakkerij", "notes": "Om 14 uur, als de oven uit is.",
            }),
        ),
        act(95, "/v1/tasks/@opname/complete"),
        task(
            71,
            "garantie",
            json!({
                "title": "Garantiebewijzen naar de praktijk sturen", "deadline": "@-66", "client_id": "@linde",
                "project_id": "@praktijk",
            }),
        ),
        act(67, "/v1/tasks/@garantie/complete"),
        task(
            38,
            "subsidie",
            json!({
                "title": "Subsidie voor de warmtepomp aanvragen", "deadline": "@-26", "client_id": "@ster",
                "project_id": "@bakkerij", "notes": "Meldcode van het toestel staat op de pakbon.",
            }),
        ),
        act(31, "/v1/tasks/@subsidie/complete"),
        act(30, "/v1/tasks/@subsidie/reopen"),
        act(26, "/v1/tasks/@subsidie/complete"),
        task(
            18,
            "",
            json!({
                "title": "Bellen wanneer de tegels komen", "category": "call", "deadline": "@-1",
                "client_id": "@jansen", "project_id": "@badkamer",
            }),
        ),
        task(
            12,
            "",
            json!({
                "title": "Nabellen over de zonnepanelen", "category": "call", "deadline": "@-2",
                "duration_minutes": 15, "client_id": "@anker", "deal_id": "@deal zon",
                "notes": "Sanne is er op maandag en donderdag.",
            }),
        ),
        task(
            9,
            "bus",
            json!({"title": "Bestelbus laten keuren", "deadline": "@-3", "notes": "Reservesleutel meenemen."}),
        ),
        task(
            6,
            "",
            json!({
                "title": "Oplevering van de warmtepomp afspreken", "category": "call", "deadline": "@+0",
                "client_id": "@ster", "project_id": "@bakkerij",
            }),
        ),
        task(
            5,
            "",
            json!({
                "title": "Planning maken voor Havenzicht", "deadline": "@+5", "duration_minutes": 120,
                "project_id": "@inregelen",
            }),
        ),
        task(
            4,
            "",
            json!({
                "title": "Kennismaken in Kleve", "category": "meeting", "deadline": "@+2", "duration_minutes": 60,
                "client_id": "@morgentau", "deal_id": "@deal kas",
            }),
        ),
        task(
            7,
            "",
            json!({"title": "Opname in de hotelkeuken", "category": "meeting", "deadline": "@+8", "deal_id": "@deal keuken"}),
        ),
        task(
            6,
            "",
            json!({
                "title": "Maten van de wachtkamer opnemen", "category": "meeting", "deadline": "@+9",
                "deal_id": "@deal wachtkamer",
            }),
        ),
        task(
            6,
            "",
            json!({"title": "Bellen over de zolder", "category": "call", "deadline": "@+10", "deal_id": "@deal zolder"}),
        ),
        task(
            2,
            "",
            json!({
                "title": "Offerte voor de zonneboiler maken", "deadline": "@+7", "duration_minutes": 45,
                "deal_id": "@deal zonneboiler",
            }),
        ),
        act(3, "/v1/tasks/@bus/complete"),
        task(2, "", json!({"title": "Certificaat koudemiddelen verlengen", "deadline": "@+20"})),
    ]
}

fn notes() -> Vec<DemoStep> {
    let note = |ago, name, about: &str, who: &str, words: &str| {
        make(ago, name, "/v1/notes", json!({"body": words, about: format!("@{who}")}))
    };
    vec![
        note(124, "", "client_id", "ster", "Leveren en werken kan alleen na 12 uur: dan is de oven uit."),
        note(117, "", "client_id", "havenzicht", "Het bestuur beslist tot 5.000 euro, daarboven de ledenvergadering."),
        note(87, "", "client_id", "smit", "Let op de hond. Aanbellen bij de zijdeur."),
        note(65, "", "deal_id", "deal vloer", "Vond een ander goedkoper. Over een jaar nog eens bellen."),
        note(58, "koeling", "client_id", "vat", "Wil voor de zomer koeling in de gistkelder."),
        change(19, "/v1/notes/@koeling", json!({"body": "Wil voor de zomer koeling in de gistkelder. Zie de deal."})),
        note(40, "", "deal_id", "deal zon", "Het dak is in orde bevonden. Constructieberekening zit in de map."),
        note(33, "", "project_id", "bakkerij", "De buitenunit komt aan de kant van de steeg, niet aan de straat."),
        note(18, "", "project_id", "badkamer", "Ligt stil: de tegels zijn drie weken later dan beloofd."),
    ]
}
