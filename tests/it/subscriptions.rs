//! Subscriptions on a moving clock: no duplicates, no omissions, no drift.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

fn firm(client: &Client) -> String {
    let body = json!({"company_name": "Bakkerij De Ster", "email": "anna@ster.example", "country": "NL", "payment_term": 30, "external_id": "C-1"});
    client.post("/v1/clients", body).expect(201).id()
}

fn hosting(firm: &str) -> Value {
    json!({"client_id": firm, "title": "Hosting", "frequency": "monthly", "subscription_start": "2026-05-31",
        "lines": [{"title": "Server", "quantity": 2, "unit_price": 10, "unit": "month", "vat_code": "NL21"}, {"title": "Domain", "unit_price": 1.25, "vat_code": "NL9"}]})
}

fn advance(client: &Client, to: &str) {
    client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
}

/// The dates of the invoices of a subscription, oldest first.
fn dates(client: &Client, id: &str) -> Vec<String> {
    let list = client
        .get(&format!("/v1/subscriptions/{id}/invoices?per_page=100&sort=invoice_date&order=asc"))
        .expect(200)
        .data();
    list.as_array().unwrap().iter().map(|one| one["invoice_date"].as_str().unwrap().to_string()).collect()
}

on_both![
    the_shape_is_that_of_the_contract,
    reports_invalid_fields,
    the_day_must_match_the_frequency,
    the_first_invoice_has_the_selected_date,
    invoices_every_period_of_a_year,
    changes_apply_from_the_next_period,
    respects_end_dates,
    a_subscription_that_ends_on_its_start_invoices_nothing_more,
    a_setting_determines_the_status_of_invoices,
];

fn the_shape_is_that_of_the_contract(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let before = server.last_seq(&client);
    let made = client.post("/v1/subscriptions", hosting(&firm)).expect(201);
    let data = made.data();
    for field in [
        "id",
        "number",
        "title",
        "client_id",
        "status",
        "term",
        "start_date",
        "end_date",
        "last_generated",
        "next_generate",
        "schedule",
        "subtotal",
        "vat_rate",
        "vat_amount",
        "total_excl_vat",
        "total_incl_vat",
        "created_at",
        "meta",
    ] {
        assert!(data.get(field).is_some(), "{field}: {data}");
    }
    // The lines are only in the response to a retrieve.
    let path = format!("/v1/subscriptions/{}", made.id());
    let shown = client.get(&path).expect(200).data();
    let patched = client.patch(&path, json!({"title": "Hosting"})).expect(200).data();
    let activated = client.act(&format!("{path}/activate")).expect(200).data();
    for other in [&data, &patched, &activated] {
        assert!(other.get("lines").is_none(), "{other}");
    }
    assert_eq!(
        (&data["number"], &data["status"], &data["term"]),
        (&json!("S2026-0001"), &json!("active"), &json!("monthly"))
    );
    assert_eq!(
        (&data["start_date"], &data["end_date"], &data["last_generated"], &data["next_generate"]),
        (&json!("2026-05-31"), &json!(null), &json!(null), &json!("2026-05-31"))
    );
    assert_eq!(data["schedule"], json!({"schedule_type": "start_date", "day_of_month": 31, "day_of_week": 7}));
    assert_eq!(
        (&data["subtotal"], &data["vat_amount"], &data["total_incl_vat"]),
        (&json!(21.25), &json!(4.31), &json!(25.56))
    );
    let line = &shown["lines"][0];
    assert_eq!(
        (
            &line["title"],
            &line["quantity"],
            &line["unit_price"],
            &line["unit"],
            &line["vat_code"],
            &line["total_excl_vat"],
            &line["total_incl_vat"]
        ),
        (&json!("Server"), &json!(2), &json!(10), &json!("month"), &json!("NL21"), &json!(20), &json!(24.2))
    );
    assert_eq!(server.events(&client, before), ["subscription.created"]);
    let item = client.get("/v1/subscriptions").data()[0].clone();
    assert!(item.get("lines").is_none() && item["schedule"]["day_of_month"] == 31);
    is_found_by_each_filter(&client, &firm, &made.id());
}

fn is_found_by_each_filter(client: &Client, firm: &str, id: &str) {
    for query in [
        format!("client_id={firm}"),
        "number=S2026-0001".into(),
        "status=active".into(),
        "start_from=2026-05-31&start_to=2026-05-31".into(),
        "search=hosti".into(),
        "search=bakkerij".into(),
        "search=anna@".into(),
        format!("id={id}"),
    ] {
        assert_eq!(client.get(&format!("/v1/subscriptions?{query}")).expect(200).json()["meta"]["total"], 1, "{query}");
    }
    assert_eq!(client.get("/v1/subscriptions?status=ended").json()["meta"]["total"], 0);
    assert_eq!(client.get("/v1/subscriptions?status=maybe").expect(422).faults(), ["status: invalid_choice"]);
}

fn reports_invalid_fields(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = firm(&client);
    for (field, value, fault) in [
        ("frequency", json!("daily"), "frequency: invalid_choice"),
        ("day_of_month", json!(32), "day_of_month: out_of_range"),
        ("day_of_month", json!(0), "day_of_month: out_of_range"),
        ("day_of_week", json!(8), "day_of_week: out_of_range"),
        ("subscription_end", json!("2026-05-30"), "subscription_end: out_of_range"),
        ("subscription_start", json!("31-05-2026"), "subscription_start: invalid_format"),
        ("client_id", json!("nope"), "client_id: reference_not_found"),
        ("client_external_id", json!("nope"), "client_external_id: reference_not_found"),
        ("lines", json!([{"unit_price": 1}]), "lines[0].title: required"),
        ("lines", json!([{"title": "a", "vat_code": "XX"}]), "lines[0].vat_code: reference_not_found"),
        ("lines", json!([{"title": "a", "quantity": "x"}]), "lines[0].quantity: wrong_type"),
        ("lines", json!([{"title": "a", "zz": 1}]), "lines[0].zz: unknown_field"),
        (
            "lines",
            json!([{"title": "a", "unit_price": 5, "total_excl_vat": 6}]),
            "lines[0].total_excl_vat: totals_mismatch",
        ),
        ("status", json!("ended"), "status: invalid_choice"),
        ("subscription_start", json!("2010-01-01"), "subscription_start: out_of_range"),
    ] {
        let mut body = hosting(&firm);
        body[field] = value;
        assert_eq!(client.post("/v1/subscriptions", body).expect(422).faults(), [fault]);
    }
    let id = client.post("/v1/subscriptions", hosting(&firm)).expect(201).id();
    let path = format!("/v1/subscriptions/{id}");
    assert_eq!(
        client.patch(&path, json!({"subscription_end": "2026-05-01"})).expect(422).faults(),
        ["subscription_end: out_of_range"]
    );
    assert_eq!(client.patch(&path, json!({"client_id": firm})).expect(422).faults(), ["client_id: read_only"]);
    assert_eq!(
        client.post(&format!("{path}/deactivate"), json!({"subscription_end": "2026-01-01"})).expect(422).faults(),
        ["subscription_end: out_of_range"]
    );
    assert_eq!(
        client.post("/v1/test-clock/advance", json!({"to": "2026-05-01T00:00:00Z"})).expect(422).faults(),
        ["to: out_of_range"]
    );
    assert_eq!(
        client.post("/v1/test-clock/advance", json!({"to": "2066-05-01T00:00:00Z"})).expect(422).faults(),
        ["to: out_of_range"]
    );
    let (account, key) = kantoor::opening::create_account(&server.app, "Real", None).unwrap();
    let real = Client::new(server.address, key, account.number);
    assert_eq!(
        real.post("/v1/test-clock/advance", json!({"to": "2066-05-01T00:00:00Z"})).expect(403).code(),
        "forbidden"
    );
    assert_eq!(real.get("/v1/test-clock").status, 403);
    assert_eq!(client.get("/v1/test-clock").expect(200).data()["now"], "2026-05-04T10:00:00.000Z");
}

fn the_day_must_match_the_frequency(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let with = |change: Value| {
        let mut body = hosting(&firm);
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        client.post("/v1/subscriptions", body)
    };
    for frequency in ["weekly", "four_weeks"] {
        assert_eq!(
            with(json!({"frequency": frequency, "day_of_month": 1})).expect(422).faults(),
            ["day_of_month: invalid_choice"]
        );
        with(json!({"frequency": frequency, "day_of_week": 1, "day_of_month": null})).expect(201);
    }
    for frequency in ["monthly", "quarterly", "half_yearly", "yearly"] {
        assert_eq!(
            with(json!({"frequency": frequency, "day_of_week": 1})).expect(422).faults(),
            ["day_of_week: invalid_choice"]
        );
    }
    assert_eq!(
        with(json!({"day_of_week": 1, "day_of_month": 1})).expect(422).faults(),
        ["day_of_week: invalid_choice"],
        "monthly is the default"
    );
    let path = format!("/v1/subscriptions/{}", with(json!({"day_of_month": 15})).expect(201).id());
    assert_eq!(client.patch(&path, json!({"day_of_week": 3})).expect(422).faults(), ["day_of_week: invalid_choice"]);
    assert_eq!(
        client.patch(&path, json!({"frequency": "weekly", "day_of_month": 3})).expect(422).faults(),
        ["day_of_month: invalid_choice"]
    );
    // A new frequency alone drops a day that does not apply to it.
    let weekly = client.patch(&path, json!({"frequency": "weekly"})).expect(200).data();
    assert_eq!(
        (&weekly["schedule"]["schedule_type"], &weekly["next_generate"]),
        (&json!("start_date"), &json!("2026-05-31"))
    );
    let wednesdays = client.patch(&path, json!({"day_of_week": 3})).expect(200).data();
    assert_eq!(
        (&wednesdays["schedule"]["day_of_week"], &wednesdays["next_generate"]),
        (&json!(3), &json!("2026-06-03"))
    );
    let yearly = client.patch(&path, json!({"frequency": "yearly"})).expect(200).data();
    assert_eq!(
        (&yearly["schedule"]["schedule_type"], &yearly["next_generate"]),
        (&json!("start_date"), &json!("2026-05-31"))
    );
    assert_eq!(client.patch(&path, json!({"day_of_month": 1})).expect(200).data()["next_generate"], "2026-06-01");
}

fn the_first_invoice_has_the_selected_date(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let with = |change: Value| {
        let mut body = hosting(&firm);
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        client.post("/v1/subscriptions", body).expect(201).id()
    };
    // After the start, on its own day, on a day of the month, before the start, and in weeks.
    let later = with(json!({"subscription_start": "2026-05-10", "first_generate_date": "2026-06-20"}));
    let day = with(json!({"subscription_start": "2026-05-10", "first_generate_date": "2026-06-20", "day_of_month": 1}));
    let after =
        with(json!({"subscription_start": "2026-05-10", "first_generate_date": "2026-06-20", "day_of_month": 25}));
    let early =
        with(json!({"subscription_start": "2026-08-01", "first_generate_date": "2026-06-20", "day_of_month": 1}));
    let weekly = with(
        json!({"subscription_start": "2026-08-01", "first_generate_date": "2026-08-06", "frequency": "weekly", "day_of_week": 1, "subscription_end": "2026-08-20"}),
    );
    let never = with(
        json!({"subscription_start": "2026-08-01", "subscription_end": "2026-09-01", "first_generate_date": "2026-09-01"}),
    );
    assert_eq!(client.get(&format!("/v1/subscriptions/{never}")).data()["status"], "ended");
    advance(&client, "2026-09-01T12:00:00Z");
    assert_eq!(dates(&client, &later), ["2026-06-20", "2026-07-20", "2026-08-20"]);
    assert_eq!(dates(&client, &day), ["2026-06-20", "2026-07-01", "2026-08-01", "2026-09-01"]);
    assert_eq!(dates(&client, &after), ["2026-06-20", "2026-07-25", "2026-08-25"]);
    assert_eq!(dates(&client, &early), ["2026-06-20", "2026-07-01", "2026-08-01", "2026-09-01"]);
    assert_eq!(dates(&client, &weekly), ["2026-08-06", "2026-08-10", "2026-08-17"]);
    assert!(dates(&client, &never).is_empty());
    let periods = client.get(&format!("/v1/subscriptions/{day}/periods")).data();
    assert_eq!((&periods[0]["period_start"], &periods[0]["period_end"]), (&json!("2026-06-20"), &json!("2026-06-30")));
}

fn invoices_every_period_of_a_year(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let monthly = client.post("/v1/subscriptions", hosting(&firm)).expect(201).id();
    let with = |change: Value| {
        let mut body = hosting(&firm);
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        client.post("/v1/subscriptions", body).expect(201).id()
    };
    let first_day = with(json!({"day_of_month": 1, "subscription_start": "2026-05-15"}));
    let weekly = with(json!({"frequency": "weekly", "day_of_week": 1, "subscription_end": "2026-06-15"}));
    let four = with(json!({"frequency": "four_weeks", "subscription_start": "2026-05-06"}));
    let quarterly = with(
        json!({"frequency": "quarterly", "subscription_start": "2026-05-01", "first_generate_date": "2026-06-10"}),
    );
    let yearly = with(json!({"frequency": "yearly", "subscription_start": "2026-05-04"}));
    let draft = with(json!({"status": "draft"}));
    // The year advances in uneven steps; the division makes no difference.
    for to in [
        "2026-05-31T23:00:00+02:00",
        "2026-06-01T00:00:00+02:00",
        "2026-09-17T12:00:00Z",
        "2026-09-17T12:00:00Z",
        "2027-05-04T09:00:00Z",
    ] {
        advance(&client, to);
    }
    assert_eq!(
        dates(&client, &monthly),
        [
            "2026-05-31",
            "2026-06-30",
            "2026-07-31",
            "2026-08-31",
            "2026-09-30",
            "2026-10-31",
            "2026-11-30",
            "2026-12-31",
            "2027-01-31",
            "2027-02-28",
            "2027-03-31",
            "2027-04-30"
        ]
    );
    assert_eq!(dates(&client, &first_day)[..3], ["2026-06-01", "2026-07-01", "2026-08-01"]);
    assert_eq!(dates(&client, &weekly), ["2026-06-01", "2026-06-08"]);
    assert_eq!(dates(&client, &four)[..3], ["2026-05-06", "2026-06-03", "2026-07-01"]);
    assert_eq!(dates(&client, &quarterly), ["2026-06-10", "2026-09-10", "2026-12-10", "2027-03-10"]);
    assert_eq!(dates(&client, &yearly), ["2026-05-04", "2027-05-04"]);
    assert!(dates(&client, &draft).is_empty());
    let ended = client.get(&format!("/v1/subscriptions/{weekly}")).data();
    assert_eq!(
        (&ended["status"], &ended["next_generate"], &ended["last_generated"]),
        (&json!("ended"), &json!(null), &json!("2026-06-08"))
    );
    numbers_follow_the_dates(&client, &four);
    let late = client.get("/v1/invoices?date_from=2027-05-01").data();
    assert_eq!(late[0]["payment_status"], "open");
    let activated = client.act(&format!("/v1/subscriptions/{draft}/activate")).expect(200).data();
    assert_eq!(activated["status"], "active");
    advance(&client, "2027-05-04T09:00:00Z");
    assert_eq!(dates(&client, &draft).len(), 12, "missed invoices are created");
}

/// Invoice numbers follow the dates, without gaps; the second invoice is that of a four-week subscription.
fn numbers_follow_the_dates(client: &Client, four_weeks: &str) {
    let all = client.get("/v1/invoices?per_page=100&sort=number&order=asc&date_to=2026-12-31").data();
    let all = all.as_array().unwrap();
    let numbers: Vec<&str> = all.iter().map(|one| one["number"].as_str().unwrap()).collect();
    let wanted: Vec<String> = (1..=all.len()).map(|n| format!("F2026-{n:04}")).collect();
    assert_eq!(numbers, wanted);
    assert!(all.windows(2).all(|two| two[0]["invoice_date"].as_str() <= two[1]["invoice_date"].as_str()));
    assert!(all.windows(2).all(|two| two[0]["created_at"].as_str() <= two[1]["created_at"].as_str()));
    let invoice = client.get(&format!("/v1/invoices/{}", all[1]["id"].as_str().unwrap())).data();
    assert_eq!(
        (&invoice["invoice_date"], &invoice["payment_status"], &invoice["generation_mode"]),
        (&json!("2026-05-06"), &json!("overdue"), &Value::Null)
    );
    assert_eq!(invoice["meta"]["notes"], "Periode: 6 mei 2026 t/m 2 juni 2026");
    assert_eq!(
        (&invoice["meta"]["subscription_id"], &invoice["meta"]["period_end"]),
        (&json!(four_weeks), &json!("2026-06-02"))
    );
    assert!(
        invoice["created_at"].as_str().unwrap().starts_with("2026-05-05T22:00"),
        "made at the start of its day: {invoice}"
    );
}

fn changes_apply_from_the_next_period(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let id = client.post("/v1/subscriptions", hosting(&firm)).expect(201).id();
    let path = format!("/v1/subscriptions/{id}");
    advance(&client, "2026-06-30T10:00:00Z");
    assert_eq!(dates(&client, &id), ["2026-05-31", "2026-06-30"]);
    let invoices = client.get(&format!("{path}/invoices")).data();
    let changed = client
        .patch(
            &path,
            json!({"frequency": "quarterly", "lines": [{"title": "Server XL", "unit_price": 100, "vat_code": "NL21"}]}),
        )
        .expect(200)
        .data();
    assert_eq!((&changed["next_generate"], &changed["total_incl_vat"]), (&json!("2026-07-31"), &json!(121)));
    assert_eq!(client.get(&path).data()["lines"].as_array().unwrap().len(), 1);
    assert_eq!(client.get(&format!("{path}/invoices")).data(), invoices, "existing invoices do not change");
    advance(&client, "2026-11-01T10:00:00Z");
    assert_eq!(dates(&client, &id), ["2026-05-31", "2026-06-30", "2026-07-31", "2026-10-31"], "the 31st is kept");
    let changed = client.patch(&path, json!({"day_of_month": 15})).expect(200).data();
    assert_eq!(
        (&changed["next_generate"], &changed["schedule"]["schedule_type"]),
        (&json!("2027-02-15"), &json!("day_of_month"))
    );
    let back = client.patch(&path, json!({"frequency": "monthly", "day_of_month": null})).expect(200).data();
    assert_eq!(
        (&back["next_generate"], &back["schedule"]["schedule_type"]),
        (&json!("2027-02-15"), &json!("start_date"))
    );
    let periods = client.get(&format!("{path}/periods")).expect(200).data();
    let told: Vec<(&str, &str, &str)> = periods
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["period_start"].as_str().unwrap(),
                one["period_end"].as_str().unwrap(),
                one["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("2026-05-31", "2026-06-29", "made"),
            ("2026-06-30", "2026-07-30", "made"),
            ("2026-07-31", "2026-10-30", "made"),
            ("2026-10-31", "2027-01-30", "made"),
            ("2027-02-15", "2027-03-14", "upcoming")
        ]
    );
    assert_eq!(periods[0]["invoice_number"], "F2026-0001");
    assert_eq!(client.delete("/v1/tax-rates/nope").status, 404);
    let rates = client.get("/v1/tax-rates").data();
    let rate = rates.as_array().unwrap().iter().find(|rate| rate["code"] == "NL21").unwrap()["id"]
        .as_str()
        .unwrap()
        .to_string();
    assert_eq!(client.delete(&format!("/v1/tax-rates/{rate}")).expect(409).code(), "in_use");
    client.patch(&format!("/v1/tax-rates/{rate}"), json!({"amount": 22})).expect(200);
    advance(&client, "2027-02-15T10:00:00Z");
    let last = client.get(&format!("{path}/invoices?sort=invoice_date")).data();
    assert_eq!(last[0]["total_incl_vat"], 122, "the rate of that day applies");
}

fn respects_end_dates(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let made = |body: Value| client.post("/v1/subscriptions", body).expect(201).id();
    let id = made(hosting(&firm));
    let before = server.last_seq(&client);
    let ended = client
        .post(&format!("/v1/subscriptions/{id}/deactivate"), json!({"subscription_end": "2026-07-31"}))
        .expect(200)
        .data();
    assert_eq!(ended, json!({"id": id, "status": "ended", "end_date": "2026-07-31"}));
    assert_eq!(server.events(&client, before), ["subscription.updated", "subscription.ended"]);
    let again = client
        .post(&format!("/v1/subscriptions/{id}/deactivate"), json!({"subscription_end": "2027-07-31"}))
        .expect(200)
        .data();
    assert_eq!(again["end_date"], "2026-07-31");
    assert_eq!(client.act(&format!("/v1/subscriptions/{id}/activate")).expect(409).code(), "invalid_transition");
    let today = made(hosting(&firm));
    let ended = client.act(&format!("/v1/subscriptions/{}/deactivate", today)).expect(200).data();
    assert_eq!(ended["end_date"], "2026-05-31", "no body is required; it does not end before it starts");
    let started = made({
        let mut body = hosting(&firm);
        body["subscription_start"] = json!("2026-05-01");
        body
    });
    let ended = client
        .post(&format!("/v1/subscriptions/{started}/deactivate"), json!({"subscription_end": null}))
        .expect(200)
        .data();
    assert_eq!(ended["end_date"], "2026-05-04");
    let ahead = made({
        let mut body = hosting(&firm);
        body["first_generate_date"] = json!("2026-05-20");
        body
    });
    client.act(&format!("/v1/subscriptions/{ahead}/deactivate")).expect(200);
    let mut short = hosting(&firm);
    short["subscription_end"] = json!("2026-08-01");
    let short = made(short);
    let before = server.last_seq(&client);
    advance(&client, "2026-12-31T10:00:00Z");
    assert_eq!(dates(&client, &id), ["2026-05-31", "2026-06-30"], "periods that begin before the end");
    assert!(dates(&client, &today).is_empty() && dates(&client, &ahead).is_empty());
    assert_eq!(dates(&client, &short), ["2026-05-31", "2026-06-30", "2026-07-31"]);
    let expiring: Vec<String> =
        server.events(&client, before).into_iter().filter(|name| name == "subscription.expiring").collect();
    assert_eq!(expiring.len(), 1, "once, for the one that reaches its end");
}

fn a_subscription_that_ends_on_its_start_invoices_nothing_more(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    // The first invoice is before the start: overdue, due today, or upcoming.
    let made = |first: &str| {
        let mut body = hosting(&firm);
        body["first_generate_date"] = json!(first);
        client.post("/v1/subscriptions", body).expect(201).id()
    };
    let end = |id: &str, body: Value| {
        let ended = client.post(&format!("/v1/subscriptions/{id}/deactivate"), body).expect(200).data();
        assert!(
            client
                .get(&format!("/v1/subscriptions/{id}/periods"))
                .data()
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one["status"] != "upcoming" || ended["end_date"] != "2026-05-31")
        );
        ended["end_date"].clone()
    };
    let mut none = Vec::new();
    for first in ["2026-03-20", "2026-05-04", "2026-05-20", "2026-05-31"] {
        for body in [json!({}), json!({"subscription_end": null}), json!({"subscription_end": "2026-05-31"})] {
            let id = made(first);
            assert_eq!(end(&id, body), "2026-05-31");
            none.push(id);
        }
    }
    // The same for a create and for a PATCH.
    let mut body = hosting(&firm);
    body["first_generate_date"] = json!("2026-05-20");
    body["subscription_end"] = json!("2026-05-31");
    let born = client.post("/v1/subscriptions", body).expect(201);
    assert_eq!(
        (&born.data()["status"], born.json()["meta"]["warnings"].as_array().unwrap().len()),
        (&json!("ended"), 1)
    );
    none.push(born.id());
    let patched = made("2026-05-20");
    assert_eq!(
        client
            .patch(&format!("/v1/subscriptions/{patched}"), json!({"subscription_end": "2026-05-31"}))
            .expect(200)
            .data()["status"],
        "ended"
    );
    none.push(patched);
    // An active subscription is invoiced for periods that begin before its end, also before its start.
    let runs = made("2026-05-20");
    assert_eq!(end(&runs, json!({"subscription_end": "2026-06-25"})), "2026-06-25");
    advance(&client, "2026-12-31T10:00:00Z");
    for id in none {
        assert!(dates(&client, &id).is_empty(), "{:?}", client.get(&format!("/v1/subscriptions/{id}")).text);
    }
    assert_eq!(dates(&client, &runs), ["2026-05-20", "2026-06-20"]);
}

fn a_setting_determines_the_status_of_invoices(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let settings = client.get("/v1/settings").expect(200).data();
    assert_eq!(
        (&settings["subscription_generation"], &settings["provider"], &settings["subscription_expiring_days"]),
        (&json!("final"), &json!("sandbox"), &json!(30))
    );
    assert_eq!(
        client.patch("/v1/settings", json!({"creditor_id": "NL00X"})).expect(422).faults(),
        ["creditor_id: invalid_format"]
    );
    let with_key = client.patch("/v1/settings", json!({"mollie_key": "test_secretsecret"})).expect(200);
    assert!(with_key.data()["mollie_key_hint"] == "test_sec…" && !with_key.text.contains("secretsecret"));
    client.patch("/v1/settings", json!({"subscription_generation": "draft"})).expect(200);
    let mut body = hosting(&firm);
    body["subscription_start"] = json!("2026-05-05");
    let id = client.post("/v1/subscriptions", body).expect(201).id();
    advance(&client, "2026-05-05T10:00:00Z");
    let invoice = client.get(&format!("/v1/subscriptions/{id}/invoices")).data()[0].clone();
    assert_eq!((&invoice["payment_status"], &invoice["sent_at"]), (&json!("draft"), &json!(null)));
    client.delete(&format!("/v1/invoices/{}", invoice["id"].as_str().unwrap())).expect(200);
    client.patch("/v1/settings", json!({"subscription_generation": "final_and_send"})).expect(200);
    advance(&client, "2026-06-05T10:00:00Z");
    assert_eq!(dates(&client, &id), ["2026-06-05"], "a deleted draft is not created again");
    let invoice = client.get(&format!("/v1/subscriptions/{id}/invoices")).data()[0].clone();
    assert_eq!(invoice["payment_status"], "open");
    assert!(invoice["sent_at"].is_string());
    let deliveries = client.get(&format!("/v1/invoices/{}/deliveries", invoice["id"].as_str().unwrap())).data();
    assert_eq!(
        (&deliveries[0]["recipient"], &deliveries[0]["send_type"]),
        (&json!("anna@ster.example"), &json!("subscription"))
    );
    let periods = client.get(&format!("/v1/subscriptions/{id}/periods")).data();
    assert_eq!((&periods[0]["status"], &periods[0]["invoice_id"]), (&json!("made"), &json!(null)));
}
