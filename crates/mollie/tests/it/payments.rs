//! Successful payments.

use std::time::Duration;

use mollie::scripted::ScriptedMollie;
use mollie::{Failure, MandateStatus, NewCustomer, NewPayment, Sequence, Status};
use serde_json::{Value, json};
use web::scripted::{Reply, Scripted};

use crate::{client, euros, first, payer, recurring};

#[tokio::test]
async fn a_first_payment_makes_a_mandate_by_which_the_next_is_taken() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let new = NewCustomer { name: "Jansen".into(), email: "jansen@a.example".into(), metadata: Value::Null };
    let customer = mollie.create_customer(&new, "customer 1").await.unwrap();
    assert_eq!(mollie.customer(&customer.id).await.unwrap(), customer);
    assert_eq!(mollie.mandates(&customer.id).await.unwrap(), []);

    let payment = mollie.create_payment(&first(&customer.id), "payment 1").await.unwrap();
    assert_eq!((&payment.status, &payment.sequence), (&Status::Open, &Sequence::First));
    assert_eq!((&payment.amount, &payment.metadata), (&euros("12.10"), &json!({"invoice": "1"})));
    assert_eq!((&payment.method, &payment.mandate_id, &payment.paid_at), (&None, &None, &None));
    assert_eq!(payment.checkout_url.unwrap(), format!("{}/checkout/{}", server.base(), payment.id));

    server.set_time("2026-03-20T09:13:37+00:00");
    assert!(server.set_status(&payment.id, Status::Paid));
    let paid = mollie.payment(&payment.id).await.unwrap();
    assert_eq!((&paid.status, paid.method.as_deref(), &paid.checkout_url), (&Status::Paid, Some("ideal"), &None));
    assert_eq!(paid.paid_at.unwrap(), "2026-03-20T09:13:37+00:00");
    let [mandate] = &mollie.mandates(&customer.id).await.unwrap()[..] else { panic!() };
    assert_eq!(paid.mandate_id.as_ref(), Some(&mandate.id));
    assert_eq!((&mandate.status, mandate.method.as_str()), (&MandateStatus::Valid, "directdebit"));
    assert_eq!(mandate.signature_date.as_deref(), Some("2026-03-20"));
    assert_eq!(&mollie.mandate(&customer.id, &mandate.id).await.unwrap(), mandate);

    let new = NewPayment { mandate_id: Some(mandate.id.clone()), ..recurring(&customer.id) };
    let taken = mollie.create_payment(&new, "payment 2").await.unwrap();
    assert_eq!((&taken.status, &taken.checkout_url), (&Status::Pending, &None));
    assert_eq!(taken.mandate_id.as_ref(), Some(&mandate.id));
    let ids = |payments: Vec<mollie::Payment>| payments.into_iter().map(|payment| payment.id).collect::<Vec<_>>();
    assert_eq!(ids(mollie.payments_of(&customer.id).await.unwrap()), [taken.id.clone(), payment.id.clone()]);
    assert_eq!(ids(server.made_payments()), [payment.id, taken.id]);

    mollie.revoke_mandate(&customer.id, &mandate.id).await.unwrap();
    assert_eq!(mollie.revoke_mandate(&customer.id, &mandate.id).await, Err(Failure::Gone));
    let refused = mollie.create_payment(&new, "payment 3").await;
    assert!(matches!(refused, Err(Failure::Rejected { status: 422, .. })), "{refused:?}");
}

#[tokio::test]
async fn money_that_comes_back_is_seen() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let customer = payer(&server, &mollie).await;
    let payment = mollie.create_payment(&recurring(&customer), "taken").await.unwrap().id;
    server.fail_payment(&payment, "AM04", "Insufficient funds");
    let failed = mollie.payment(&payment).await.unwrap();
    assert_eq!((failed.status, failed.failure_reason.unwrap()), (Status::Failed, "Insufficient funds (AM04)".into()));

    let payment = mollie.create_payment(&recurring(&customer), "taken again").await.unwrap().id;
    server.set_status(&payment, Status::Paid);
    assert_eq!(mollie.payment(&payment).await.unwrap().amount_charged_back, None);
    assert_eq!(mollie.chargebacks(&payment).await.unwrap(), []);
    assert!(server.chargeback(&payment));
    let paid = mollie.payment(&payment).await.unwrap();
    assert_eq!((paid.status, paid.amount_charged_back), (Status::Paid, Some(euros("12.10"))));
    let [chargeback] = &mollie.chargebacks(&payment).await.unwrap()[..] else { panic!() };
    assert_eq!((&chargeback.amount, &chargeback.reversed_at), (&euros("12.10"), &None));
    assert_eq!(chargeback.reason.as_deref(), Some("Refund requested by the account holder (MD06)"));

    server.refund(&payment, &euros("2.10"));
    assert_eq!(mollie.payment(&payment).await.unwrap().amount_refunded, Some(euros("2.10")));
}

#[tokio::test]
async fn an_open_payment_can_be_canceled_and_a_paid_one_cannot() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let new = NewPayment { sequence: Sequence::OneOff, customer_id: None, ..first("") };
    let payment = mollie.create_payment(&new, "1").await.unwrap();
    assert_eq!(mollie.cancel_payment(&payment.id).await.unwrap().status, Status::Canceled);
    let payment = mollie.create_payment(&new, "2").await.unwrap();
    server.set_status(&payment.id, Status::Paid);
    let refused = mollie.cancel_payment(&payment.id).await.unwrap_err();
    assert_eq!(refused.to_string(), "Mollie rejected the request (422): The payment cannot be canceled");
    assert_eq!(mollie.payment(&payment.id).await.unwrap().status, Status::Paid);
}

#[tokio::test]
async fn calls_carry_the_key_and_what_makes_something_its_own() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let customer = mollie.create_customer(&NewCustomer::default(), "once").await.unwrap();
    mollie.customer(&customer.id).await.unwrap();
    let [made, read] = &server.received()[..] else { panic!() };
    assert_eq!(made.header("authorization"), Some("Bearer test_scripted"));
    assert_eq!((made.header("idempotency-key"), read.header("idempotency-key")), (Some("once"), None));
    assert_eq!(made.header("content-type"), Some("application/json"));
    assert_eq!(made.text(), r#"{"name":""}"#);
    assert!(!format!("{mollie:?}").contains("test_scripted"));
}

#[tokio::test]
async fn webhooks_are_called_once_twice_or_late() {
    let ours = Scripted::start(|_| Reply::new(200)).unwrap();
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let webhook_url = Some(ours.url("/mollie?account=1"));
    let new = NewPayment { sequence: Sequence::OneOff, customer_id: None, webhook_url, ..first("") };
    let payment = mollie.create_payment(&new, "1").await.unwrap();
    assert_eq!(server.call_webhook(&payment.id).unwrap(), 200);
    assert_eq!(server.call_webhook(&payment.id).unwrap(), 200);
    let late = server.call_webhook_late(&payment.id, Duration::from_millis(50)).unwrap();
    assert_eq!(ours.received().len(), 2);
    assert_eq!(late.join().unwrap().unwrap(), 200);
    for called in ours.received() {
        assert_eq!((called.method.as_str(), called.path.as_str()), ("POST", "/mollie?account=1"));
        assert_eq!(called.header("content-type"), Some("application/x-www-form-urlencoded"));
        assert_eq!(called.text(), format!("id={}", payment.id));
    }
    assert!(server.call_webhook("tr_none").is_err());
}

#[tokio::test]
async fn the_customer_pays_on_a_page_and_comes_back() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let new = NewPayment { sequence: Sequence::OneOff, customer_id: None, ..first("") };
    let payment = mollie.create_payment(&new, "1").await.unwrap();
    let page = payment.checkout_url.unwrap();
    let browser = web::Client::new(Scripted::settings()).unwrap();
    let open = async |url: String| {
        browser
            .send(web::OutgoingRequest { method: web::Method::GET, url, headers: vec![], body: vec![] })
            .await
            .unwrap()
    };
    assert_eq!(open(page.clone()).await.status, 200);
    let back = open(format!("{page}?status=paid")).await;
    assert_eq!((back.status, back.header("location")), (303, Some("https://kantoor.example/paid")));
    assert_eq!(mollie.payment(&payment.id).await.unwrap().status, Status::Paid);
}
