//! Deals in all phases.

use serde_json::{Value, json};

use super::{DemoStep, act, change, make};

pub(super) fn steps() -> Vec<DemoStep> {
    let mut steps = won();
    steps.extend(lost());
    steps.extend(open());
    steps
}

fn deal(ago: i64, name: &str, body: Value) -> DemoStep {
    make(ago, name, "/v1/deals", body)
}

/// Moves a deal through these phases, each a number of working days ago.
fn moves(name: &str, phases: &[(i64, &str)]) -> Vec<DemoStep> {
    let to = |(ago, phase): &(i64, &str)| {
        make(*ago, "", &format!("/v1/deals/@{name}/move"), json!({"phase_id": format!("@phase {phase}")}))
    };
    phases.iter().map(to).collect()
}

fn won() -> Vec<DemoStep> {
    let mut steps = vec![
        deal(
            115,
            "deal praktijk",
            json!({
                "title": "Nieuwe cv-installatie voor de praktijk", "client_id": "@linde", "amount": 9240,
                "expected_close_date": "@-100",
            }),
        ),
        act(101, "/v1/deals/@deal praktijk/win"),
        deal(
            100,
            "deal bakkerij",
            json!({
                "title": "Warmtepomp voor de bakkerij", "client_id": "@ster", "amount": 14850, "priority": "high",
                "expected_close_date": "@-75",
            }),
        ),
        deal(
            78,
            "deal badkamer",
            json!({
                "title": "Badkamer en toilet vernieuwen", "client_id": "@jansen", "amount": "11600.00",
                "expected_close_date": "@-55",
            }),
        ),
        make(60, "", "/v1/deals/@deal badkamer/move", json!({"phase_id": "@phase Closing", "status": "won"})),
    ];
    steps.extend(moves("deal praktijk", &[(114, "Contact"), (110, "Proposal"), (104, "Closing")]));
    let phases = [(97, "Contact"), (92, "Proposal"), (85, "Negotiation"), (80, "Closing")];
    steps.extend(moves("deal bakkerij", &phases));
    steps.push(act(76, "/v1/deals/@deal bakkerij/win"));
    steps.extend(moves("deal badkamer", &[(76, "Contact"), (70, "Proposal")]));
    steps
}

fn lost() -> Vec<DemoStep> {
    let mut steps = vec![
        deal(
            88,
            "deal vloer",
            json!({
                "title": "Vloerverwarming op de begane grond", "client_id": "@smit", "amount": 6100, "priority": "low",
                "expected_close_date": "@-60",
            }),
        ),
        act(65, "/v1/deals/@deal vloer/lose"),
        deal(
            66,
            "deal laadpunten",
            json!({
                "title": "Laadpunten op het parkeerterrein", "client_id": "@anker", "amount": 18400,
                "expected_close_date": "@-40",
            }),
        ),
        act(48, "/v1/deals/@deal laadpunten/lose"),
    ];
    steps.extend(moves("deal vloer", &[(86, "Contact"), (80, "Proposal")]));
    steps.extend(moves("deal laadpunten", &[(61, "Contact")]));
    steps
}

fn open() -> Vec<DemoStep> {
    let mut steps = vec![
        deal(
            52,
            "deal zon",
            json!({
                "title": "Zonnepanelen op het hoteldak", "client_id": "@anker", "amount": 32750, "priority": "high",
                "expected_close_date": "@+12",
            }),
        ),
        change(12, "/v1/deals/@deal zon", json!({"amount": 31900})),
        deal(
            45,
            "deal onderhoud",
            json!({
                "title": "Onderhoud van 48 ketels", "client_id": "@havenzicht", "amount": 8600, "priority": "high",
                "expected_close_date": "@+3",
            }),
        ),
        deal(
            38,
            "deal ventilatie",
            json!({
                "title": "Ventilatie in acht lokalen", "client_id": "@draak", "amount": 27300,
                "expected_close_date": "@+25",
            }),
        ),
        deal(
            19,
            "deal koeling",
            json!({
                "title": "Koeling van de gistkelder", "client_id": "@vat", "amount": 21500,
                "expected_close_date": "@+40",
            }),
        ),
        deal(
            4,
            "deal kas",
            json!({
                "title": "Kasverwarming met een warmtepomp", "client_id": "@morgentau", "amount": 48000,
                "expected_close_date": "@+60",
            }),
        ),
        deal(
            23,
            "deal keuken",
            json!({
                "title": "Luchtbehandeling in de hotelkeuken", "client_id": "@anker", "amount": 16900,
                "expected_close_date": "@+16",
            }),
        ),
        deal(
            14,
            "deal wachtkamer",
            json!({
                "title": "Koeling in de wachtkamer", "client_id": "@linde", "amount": 6400,
                "expected_close_date": "@+22",
            }),
        ),
        deal(
            7,
            "deal zolder",
            json!({
                "title": "Airco op zolder", "client_id": "@smit", "amount": 2450, "priority": "low",
                "expected_close_date": "@+18",
            }),
        ),
        deal(
            3,
            "deal zonneboiler",
            json!({
                "title": "Zonneboiler op de aanbouw", "client_id": "@jansen", "amount": 4950,
                "expected_close_date": "@+35",
            }),
        ),
    ];
    steps.extend(moves("deal zon", &[(50, "Contact"), (41, "Proposal"), (27, "Negotiation")]));
    steps.extend(moves("deal onderhoud", &[(44, "Contact"), (33, "Proposal"), (20, "Negotiation"), (6, "Closing")]));
    steps.extend(moves("deal ventilatie", &[(34, "Contact"), (15, "Proposal")]));
    steps.extend(moves("deal koeling", &[(11, "Contact")]));
    steps.extend(moves("deal keuken", &[(21, "Contact"), (8, "Proposal")]));
    steps.extend(moves("deal wachtkamer", &[(10, "Contact")]));
    steps
}
