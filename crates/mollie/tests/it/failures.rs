//! Failures, and the effects of a retry.

use std::time::Duration;

use mollie::scripted::ScriptedMollie;
use mollie::{Failure, Mollie, NewCustomer, NewPayment, Status};
use web::scripted::{Reply, Scripted};
use web::{Client, Settings};

use crate::{client, euros, first, payer, recurring};

#[tokio::test]
async fn an_answer_that_got_lost_does_not_take_the_money_twice() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let customer = payer(&server, &mollie).await;
    let made = server.made_payments().len();

    server.cut_next(1);
    let lost = mollie.create_payment(&recurring(&customer), "lost").await;
    assert!(matches!(lost, Err(Failure::Unknown(_))), "{lost:?}");
    server.delay_next(1, Duration::from_secs(2));
    let slow = mollie.create_payment(&recurring(&customer), "lost").await;
    assert!(matches!(slow, Err(Failure::Unknown(_))), "{slow:?}");
    let again = mollie.create_payment(&recurring(&customer), "lost").await.unwrap();
    assert_eq!((server.made_payments().len(), server.replayed()), (made + 1, 2));
    assert_eq!(server.made_payments().last().unwrap().id, again.id);

    // The key has expired after an hour, but the payment can be found.
    server.forget_keys();
    assert_eq!(mollie.payments_of(&customer).await.unwrap()[0].metadata, recurring(&customer).metadata);
    mollie.create_payment(&recurring(&customer), "lost").await.unwrap();
    assert_eq!(server.made_payments().len(), made + 2);
}

#[tokio::test]
async fn a_key_does_not_serve_two_calls() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let customer = payer(&server, &mollie).await;
    mollie.create_payment(&recurring(&customer), "key").await.unwrap();
    let other = NewPayment { amount: euros("13.00"), ..recurring(&customer) };
    let refused = mollie.create_payment(&other, "key").await;
    assert!(matches!(refused, Err(Failure::Rejected { status: 400, .. })), "{refused:?}");
}

#[tokio::test]
async fn reports_a_rejection_in_the_words_of_mollie() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let new = NewPayment { amount: euros("10"), ..first("cst_1") };
    let refused = mollie.create_payment(&new, "1").await.unwrap_err();
    assert_eq!(
        refused,
        Failure::Rejected {
            status: 422,
            title: "Unprocessable Entity".into(),
            detail: "The amount contains an invalid value".into(),
            field: Some("amount".into()),
        }
    );
    assert_eq!(refused.to_string(), "Mollie rejected the request (422): The amount contains an invalid value [amount]");
    assert!(server.made_payments().is_empty());
}

#[tokio::test]
async fn what_passes_is_tried_later() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    server.throttle_next(1, Duration::from_secs(7));
    let busy = mollie.create_customer(&NewCustomer::default(), "1").await;
    let why = "Mollie's rate limit is exceeded (429).".to_owned();
    assert_eq!(busy, Err(Failure::Later { why, after: Some(Duration::from_secs(7)) }));
    server.fail_next(1, 503);
    let down = mollie.create_customer(&NewCustomer::default(), "1").await;
    assert!(matches!(down, Err(Failure::Later { after: None, .. })), "{down:?}");
    server.fail_next(1, 500);
    let broken = mollie.customer("cst_1").await;
    assert!(matches!(broken, Err(Failure::Later { .. })), "{broken:?}");
    assert_eq!(server.made_customers(), 0);

    let base = server.base();
    drop(server);
    let away = Mollie::new(Client::new(Scripted::settings()).unwrap(), &base, "k").customer("cst_1").await;
    assert!(matches!(away, Err(Failure::Later { .. })), "{away:?}");
}

#[tokio::test]
async fn a_problem_of_mollie_s_may_come_after_the_work() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    for status in [500, 502, 504, 409] {
        server.fail_next(1, status);
        let made = mollie.create_customer(&NewCustomer::default(), "1").await;
        assert!(matches!(made, Err(Failure::Unknown(_))), "{status}: {made:?}");
    }
    mollie.create_customer(&NewCustomer::default(), "1").await.unwrap();
}

#[tokio::test]
async fn a_wrong_key_or_address_is_for_somebody_to_mend() {
    let server = ScriptedMollie::start().unwrap();
    let allowed = || Client::new(Scripted::settings()).unwrap();
    let base = server.base();
    for mollie in [
        Mollie::new(allowed(), &base, "test_other"),
        Mollie::new(allowed(), &base, "two\nlines"),
        Mollie::new(allowed(), "mollie", ScriptedMollie::KEY),
        Mollie::new(Client::new(Settings::default()).unwrap(), &base, ScriptedMollie::KEY),
    ] {
        let refused = mollie.customer("cst_1").await;
        let Err(Failure::Settings(why)) = refused else { panic!("{refused:?}") };
        assert!(!why.contains("two"), "{why}");
    }
    let elsewhere = Scripted::start(|_| Reply::new(301).header("Location", "/")).unwrap();
    let refused = Mollie::new(allowed(), &elsewhere.url("/"), "k").customer("cst_1").await;
    assert!(matches!(refused, Err(Failure::Settings(_))), "{refused:?}");
}

#[tokio::test]
async fn what_is_not_there_is_gone_however_it_is_called() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    assert_eq!(mollie.payment("tr_9").await, Err(Failure::Gone));
    assert_eq!(mollie.cancel_payment("tr_9").await, Err(Failure::Gone));
    let asked = server.received().len();
    for id in ["", "../customers/cst_1", "tr_1/refunds", "tr_1?x", "tr_1#", "tr_1%2f", "tr 1", "é", &"a".repeat(101)] {
        assert_eq!(mollie.payment(id).await, Err(Failure::Gone), "{id}");
    }
    assert_eq!(server.received().len(), asked, "invalid ids are not requested");
}

#[tokio::test]
async fn answers_that_are_no_answers_do_not_pass_for_any() {
    let server = Scripted::start(|_| Reply::json(200, "<html>")).unwrap();
    let mollie = Mollie::new(Client::new(Scripted::settings()).unwrap(), &server.url(""), "k");
    assert!(matches!(mollie.payment("tr_1").await, Err(Failure::Later { .. })));
    assert!(matches!(mollie.create_payment(&first("cst_1"), "1").await, Err(Failure::Unknown(_))));
    assert!(matches!(mollie.cancel_payment("tr_1").await, Err(Failure::Unknown(_))));
}

#[tokio::test]
async fn a_status_that_is_new_to_us_is_kept() {
    let server = ScriptedMollie::start().unwrap();
    let mollie = client(&server);
    let customer = payer(&server, &mollie).await;
    let payment = mollie.create_payment(&recurring(&customer), "1").await.unwrap().id;
    server.set_status(&payment, Status::from("teleported"));
    assert_eq!(mollie.payment(&payment).await.unwrap().status, Status::Other("teleported".into()));
}
