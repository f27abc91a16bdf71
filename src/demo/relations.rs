//! Clients and suppliers. All of them are fictitious: addresses end in `.example`, and telephone numbers start with a
//! digit that is not in use.

use serde_json::json;

use super::{DemoStep, change, make};

pub(super) fn steps() -> Vec<DemoStep> {
    let mut steps = suppliers();
    steps.extend(companies());
    steps.extend(people());
    steps.extend(links());
    steps.push(change(
        70,
        "/v1/clients/@linde",
        json!({"email_invoices": "boekhouding@praktijk-de-linde.example", "custom_fields": {"onderhoud": "compleet"}}),
    ));
    steps
}

fn suppliers() -> Vec<DemoStep> {
    let supplier = |body| make(128, "", "/v1/suppliers", body);
    vec![
        supplier(json!({
            "company_name": "Technische Groothandel Maasboog", "firstname": "Els", "lastname": "Pieters",
            "email": "verkoop@maasboog.example", "phone": "+31 43 123 45 20", "city": "Maastricht", "country": "NL",
        })),
        supplier(json!({
            "company_name": "Boreas Warmtepompen", "firstname": "Wim", "lastname": "Hoekstra",
            "email": "orders@boreas-warmtepompen.example", "phone": "+31 58 123 45 21", "city": "Leeuwarden",
            "country": "NL",
        })),
        supplier(json!({
            "company_name": "Koperloods Brabant", "email": "info@koperloods.example", "phone": "+31 40 123 45 22",
            "city": "Eindhoven", "country": "NL",
        })),
        supplier(json!({
            "company_name": "Sonnenfeld Module GmbH", "firstname": "Jutta", "lastname": "Krämer",
            "email": "vertrieb@sonnenfeld-module.example", "phone": "+49 221 4710 123", "city": "Köln",
            "country": "DE",
        })),
        supplier(json!({
            "type": "private", "firstname": "Piet", "lastname": "Brands", "email": "piet@brands-tegelwerk.example",
            "phone": "+31 13 123 45 23", "city": "Goirle", "country": "NL",
        })),
    ]
}

fn companies() -> Vec<DemoStep> {
    vec![
        make(
            127,
            "ster",
            "/v1/clients",
            json!({
                "company_name": "Bakkerij De Ster", "firstname": "Anna", "lastname": "de Vries",
                "email": "info@bakkerij-de-ster.example", "phone": "+31 13 123 45 67",
                "address": "Korenbloemstraat 3", "zipcode": "5014 CD", "city": "Tilburg", "country": "NL",
                "company_registration_number": "99000125", "vat_number": "NL999990020B56",
                "website": "https://bakkerij-de-ster.example", "iban": "NL20INGB0001234567",
                "bank_account_name": "Bakkerij De Ster", "bic": "INGBNL2A", "payment_term": 14,
                "email_invoices": "facturen@bakkerij-de-ster.example", "mail_salutation": "Beste Anna",
                "custom_fields": {"onderhoud": "compleet", "sleutel": true},
            }),
        ),
        make(
            126,
            "linde",
            "/v1/clients",
            json!({
                "company_name": "Huisartsenpraktijk De Linde", "firstname": "Karim", "lastname": "Bouzid",
                "email": "praktijk@praktijk-de-linde.example", "phone": "+31 76 123 45 30",
                "address": "Lindelaan 21", "zipcode": "4817 EF", "city": "Breda", "country": "NL",
                "company_registration_number": "99000136", "website": "https://praktijk-de-linde.example",
                "payment_term": 30, "mail_salutation": "Geachte heer Bouzid",
                "custom_fields": {"onderhoud": "basis", "sleutel": false},
            }),
        ),
        make(
            118,
            "havenzicht",
            "/v1/clients",
            json!({
                "company_name": "VvE Havenzicht", "email": "bestuur@vve-havenzicht.example",
                "phone": "+31 162 12 34 31", "address": "Havenkade 200", "zipcode": "4901 GH",
                "city": "Oosterhout", "country": "NL", "company_registration_number": "99000147",
                "payment_term": 30, "email_reminders": "penningmeester@vve-havenzicht.example",
                "mail_salutation": "Geacht bestuur", "custom_fields": {"onderhoud": "geen", "sleutel": true},
            }),
        ),
        make(
            110,
            "anker",
            "/v1/clients",
            json!({
                "company_name": "Hotel Het Zilveren Anker", "firstname": "Sanne", "lastname": "Vermeer",
                "email": "receptie@zilveren-anker.example", "phone": "+31 73 123 45 32",
                "address": "Kadeplein 8", "zipcode": "5211 JK", "city": "'s-Hertogenbosch", "country": "NL",
                "company_registration_number": "99000158", "vat_number": "NL999990032B45",
                "website": "https://zilveren-anker.example", "iban": "NL44RABO0123456789",
                "bank_account_name": "Het Zilveren Anker Exploitatie", "bic": "RABONL2U", "payment_term": 30,
                "quote_expiration_days": 45, "email_invoices": "crediteuren@zilveren-anker.example",
                "mail_salutation": "Beste Sanne", "custom_fields": {"onderhoud": "basis"},
            }),
        ),
        make(
            95,
            "draak",
            "/v1/clients",
            json!({
                "company_name": "Basisschool De Papieren Draak", "firstname": "Ineke", "lastname": "Maas",
                "email": "directie@papieren-draak.example", "phone": "+31 13 123 45 33",
                "address": "Vliegerpad 1", "zipcode": "5038 LM", "city": "Tilburg", "country": "NL",
                "payment_term": 30, "mail_salutation": "Beste Ineke", "custom_fields": {"onderhoud": "geen"},
            }),
        ),
        make(
            60,
            "vat",
            "/v1/clients",
            json!({
                "company_name": "Brouwerij Het Zevende Vat", "firstname": "Lotte", "lastname": "Claes",
                "email": "lotte@zevende-vat.example", "phone": "+32 14 12 34 56",
                "address": "Hopstraat 77", "zipcode": "2300", "city": "Turnhout", "country": "BE",
                "vat_number": "BE0999999922", "website": "https://zevende-vat.example", "iban": "BE68539007547034",
                "bank_account_name": "Het Zevende Vat", "payment_term": 30, "mail_salutation": "Dag Lotte",
            }),
        ),
        make(
            22,
            "morgentau",
            "/v1/clients",
            json!({
                "company_name": "Gärtnerei Morgentau GmbH", "firstname": "Jürgen", "lastname": "Weiß",
                "email": "weiss@gaertnerei-morgentau.example", "phone": "+49 221 4710 456",
                "address": "Am Gewächshaus 5", "zipcode": "47533", "city": "Kleve", "country": "DE",
                "vat_number": "DE999999995", "iban": "DE89370400440532013000",
                "bank_account_name": "Gärtnerei Morgentau GmbH", "payment_term": 14,
                "mail_salutation": "Sehr geehrter Herr Weiß",
            }),
        ),
    ]
}

fn people() -> Vec<DemoStep> {
    vec![
        make(
            127,
            "anna",
            "/v1/clients",
            json!({
                "type": "private", "firstname": "Anna", "lastname": "de Vries", "email": "anna@bakkerij-de-ster.example",
                "phone": "+31 13 123 45 68", "city": "Tilburg", "country": "NL", "mail_salutation": "Beste Anna",
            }),
        ),
        make(
            125,
            "smit",
            "/v1/clients",
            json!({
                "type": "private", "firstname": "Jan", "lastname": "Smit", "email": "jan@familie-smit.example",
                "phone": "+31 161 12 34 40", "address": "Merelhof 9", "zipcode": "5126 NP", "city": "Gilze",
                "country": "NL", "payment_term": 14, "custom_fields": {"onderhoud": "basis", "sleutel": false},
            }),
        ),
        make(
            118,
            "farid",
            "/v1/clients",
            json!({
                "type": "private", "firstname": "Farid", "lastname": "el Amrani",
                "email": "farid@vve-havenzicht.example", "phone": "+31 162 12 34 41", "city": "Oosterhout",
                "country": "NL", "mail_salutation": "Geachte heer El Amrani",
            }),
        ),
        make(
            110,
            "sanne",
            "/v1/clients",
            json!({
                "type": "private", "firstname": "Sanne", "lastname": "Vermeer",
                "email": "sanne@zilveren-anker.example", "phone": "+31 73 123 45 42", "city": "'s-Hertogenbosch",
                "country": "NL", "mail_salutation": "Beste Sanne",
            }),
        ),
        make(
            80,
            "jansen",
            "/v1/clients",
            json!({
                "type": "private", "firstname": "Marieke", "lastname": "Jansen",
                "email": "marieke@jansen-thuis.example", "phone": "+31 13 123 45 43", "address": "Zandpad 52",
                "zipcode": "5051 RS", "city": "Goirle", "country": "NL", "payment_term": 14,
                "custom_fields": {"onderhoud": "compleet"},
            }),
        ),
    ]
}

fn links() -> Vec<DemoStep> {
    let link = |ago, company: &str, person: &str, function: &str, department: &str| {
        let body = json!({"client_id": format!("@{person}"), "function": function, "department": department});
        make(ago, "", &format!("/v1/clients/@{company}/links"), body)
    };
    vec![
        link(127, "ster", "anna", "Eigenaar", ""),
        link(118, "havenzicht", "farid", "Voorzitter", "Bestuur"),
        link(110, "anker", "sanne", "Hoofd technische dienst", "Facilitair"),
    ]
}
