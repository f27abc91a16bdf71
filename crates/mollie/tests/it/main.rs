//! The client against a scripted Mollie.
#![expect(clippy::unwrap_used, reason = "tests")]

mod failures;
mod payments;

use std::time::Duration;

use mollie::scripted::ScriptedMollie;
use mollie::{Amount, Mollie, NewCustomer, NewPayment, Sequence};
use serde_json::json;
use web::Settings;
use web::scripted::Scripted;

fn client(server: &ScriptedMollie) -> Mollie {
    server.client(Settings { timeout: Duration::from_millis(500), ..Scripted::settings() }).unwrap()
}

fn euros(value: &str) -> Amount {
    Amount { currency: "EUR".into(), value: value.into() }
}

fn first(customer_id: &str) -> NewPayment {
    NewPayment {
        amount: euros("12.10"),
        description: "Invoice 2026-1".into(),
        sequence: Sequence::First,
        customer_id: Some(customer_id.into()),
        mandate_id: None,
        redirect_url: Some("https://kantoor.example/paid".into()),
        webhook_url: None,
        method: None,
        metadata: json!({"invoice": "1"}),
    }
}

fn recurring(customer_id: &str) -> NewPayment {
    NewPayment { sequence: Sequence::Recurring, redirect_url: None, ..first(customer_id) }
}

/// A customer who has paid a first payment.
async fn payer(server: &ScriptedMollie, mollie: &Mollie) -> String {
    let customer = mollie.create_customer(&NewCustomer::default(), "payer").await.unwrap();
    let payment = mollie.create_payment(&first(&customer.id), "payer's first").await.unwrap();
    assert!(server.set_status(&payment.id, mollie::Status::Paid));
    customer.id
}
