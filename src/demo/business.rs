//! The business itself: its identity, its settings and its products.

use serde_json::json;

use super::{DemoStep, NAME, change, make};

pub(super) fn steps() -> Vec<DemoStep> {
    let mut steps = settings();
    steps.extend(products());
    steps.extend(flows());
    steps
}

/// Thanks for first payments from the beginning; what waits for approval, and notes on tickets, since a few weeks.
fn flows() -> Vec<DemoStep> {
    let enable =
        |ago, event: &str| change(ago, &format!("/v1/automation/flows/@flow {event}"), json!({"active": true}));
    vec![enable(128, "customer.first_invoice_paid"), enable(12, "quote.silent"), enable(6, "ticket.stale")]
}

fn settings() -> Vec<DemoStep> {
    vec![
        change(
            130,
            "/v1/corporate-identities/@identity",
            json!({
                "name": NAME, "primary_color": "#0b5c6b", "secondary_color": "#e08a1e",
                "address": "Ambachtsweg 14", "zipcode": "5048 AX", "city": "Tilburg", "country": "NL",
                "email": "kantoor@vandijk-installatietechniek.example", "phone": "+31 13 123 45 10",
                "website": "https://vandijk-installatietechniek.example",
                "company_registration_number": "99000114", "vat_number": "NL000099998B57",
                "iban": "NL91ABNA0417164300", "bic": "ABNANL2A",
                "footer": "Storing? Bel dag en nacht: +31 13 123 45 11.",
            }),
        ),
        make(130, "", "/v1/email-domains", json!({"domain": "vandijk-installatietechniek.example", "type": "sending"})),
        make(
            130,
            "",
            "/v1/custom-fields",
            json!({
                "entity": "client", "key": "onderhoud", "label": "Onderhoudscontract",
                "type": "select", "options": ["geen", "basis", "compleet"],
            }),
        ),
        make(
            130,
            "",
            "/v1/custom-fields",
            json!({"entity": "client", "key": "sleutel", "label": "Sleutel in de kluis", "type": "checkbox"}),
        ),
        change(
            130,
            "/v1/ticket-channels/@channel",
            json!({
                "name": "Service", "email": "service@vandijk-installatietechniek.example",
                "from_email": "service@vandijk-installatietechniek.example", "from_name": "Service van Van Dijk",
                "inbound_email": "in@vandijk-installatietechniek.example",
                "forwarding_emails": ["storing@vandijk-installatietechniek.example"],
            }),
        ),
    ]
}

fn products() -> Vec<DemoStep> {
    let product = |name, code, title, price, vat, unit| {
        let body = json!({"name": title, "code": code, "price": price, "vat_rate": vat, "unit": unit});
        make(129, name, "/v1/products", body)
    };
    vec![
        product("ketel", "CV-28", "Hr-ketel 28 kW", "1485", "21", "stuk"),
        product("warmtepomp", "WP-8", "Lucht-waterwarmtepomp 8 kW", "5240", "21", "stuk"),
        product("buffervat", "BV-200", "Buffervat 200 liter", "689.50", "21", "stuk"),
        product("vloer", "VV-M2", "Vloerverwarming, aangelegd", "47.50", "21", "m²"),
        product("thermostaat", "TH-S", "Slimme thermostaat", "189", "21", "stuk"),
        // Solar panels on homes have zero-rated VAT, and insulating homes has the reduced rate.
        product("paneel", "ZP-430", "Zonnepaneel 430 Wp op een woning", "129", "0", "stuk"),
        product("arbeid", "ARB", "Arbeid monteur", "62.50", "21", "uur"),
        product("isolatie", "ISO", "Isolatiewerk aan een woning", "58", "9", "uur"),
        product("voorrijden", "VRK", "Voorrijkosten", "35", "21", "keer"),
        product("contract", "OH-C", "Onderhoudscontract compleet", "14.95", "21", "maand"),
        change(62, "/v1/products/@arbeid", json!({"price": "64.50"})),
        change(44, "/v1/products/@buffervat", json!({"active": false})),
    ]
}
