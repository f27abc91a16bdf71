//! The data of the fake Mollie, and its rules.

use serde_json::{Map, Value, json};

use crate::{MandateStatus, Status};

/// The status of a response, and its body; null for none.
pub(super) type Said = (u16, Value);

pub(super) struct Books {
    pub(super) base: String,
    pub(super) time: String,
    pub(super) customers: Vec<Value>,
    pub(super) payments: Vec<Value>,
    mandates: Vec<Value>,
    mandates_made: usize,
    chargebacks: Vec<Value>,
}

impl Default for Books {
    fn default() -> Books {
        let time = "2026-01-05T09:00:00+00:00".into();
        let (customers, payments, mandates, chargebacks) = Default::default();
        Books { base: String::new(), time, customers, payments, mandates, mandates_made: 0, chargebacks }
    }
}

impl Books {
    pub(super) fn call(&mut self, method: &str, path: &[&str], body: &Value) -> Said {
        match (method, path) {
            ("POST", ["v2", "customers"]) => self.make_customer(body),
            ("GET", ["v2", "customers", id]) => found(by_id(&self.customers, id)),
            ("GET", ["v2", "customers", id, "payments"]) => {
                list("payments", self.payments.iter().filter(|payment| payment["customerId"] == *id))
            }
            ("GET", ["v2", "customers", id, "mandates"]) => list("mandates", self.mandates_of(id)),
            ("GET", ["v2", "customers", customer, "mandates", id]) => {
                found(self.mandates_of(customer).find(|mandate| mandate["id"] == *id))
            }
            ("DELETE", ["v2", "customers", customer, "mandates", id]) => {
                let before = self.mandates.len();
                self.mandates.retain(|mandate| mandate["customerId"] != *customer || mandate["id"] != *id);
                if self.mandates.len() < before { (204, Value::Null) } else { missing() }
            }
            ("POST", ["v2", "payments"]) => self.make_payment(body),
            ("GET", ["v2", "payments", id]) => found(by_id(&self.payments, id)),
            ("GET", ["v2", "payments", id, "chargebacks"]) => {
                list("chargebacks", self.chargebacks.iter().filter(|chargeback| chargeback["paymentId"] == *id))
            }
            ("DELETE", ["v2", "payments", id]) => self.cancel(id),
            _ => missing(),
        }
    }

    pub(super) fn payment(&self, id: &str) -> Option<&Value> {
        by_id(&self.payments, id)
    }

    pub(super) fn mandates_of(&self, customer: &str) -> impl Iterator<Item = &Value> {
        self.mandates.iter().filter(move |mandate| mandate["customerId"] == customer)
    }

    pub(super) fn set(&mut self, payment: &str, field: &str, value: Value) -> bool {
        let found = self.payments.iter_mut().find(|found| found["id"] == payment);
        found.map(|found| found[field] = value).is_some()
    }

    pub(super) fn set_status(&mut self, id: &str, status: &Status) -> bool {
        let Some(mut payment) = self.payment(id).cloned() else { return false };
        payment["status"] = json!(status.word());
        if let Status::Paid | Status::Failed | Status::Expired | Status::Canceled | Status::Authorized = status {
            payment[format!("{status}At")] = json!(self.time);
        }
        if *status != Status::Open {
            let _ = payment["_links"].as_object_mut().and_then(|links| links.remove("checkout"));
        }
        if *status == Status::Paid && payment["method"].is_null() {
            payment["method"] = json!("ideal");
        }
        if *status == Status::Paid && payment["sequenceType"] == "first" && payment["mandateId"].is_null() {
            payment["mandateId"] = self.make_mandate(&payment);
        }
        self.payments.iter_mut().filter(|found| found["id"] == id).for_each(|found| *found = payment.clone());
        true
    }

    pub(super) fn set_mandate(&mut self, id: &str, status: &MandateStatus) -> bool {
        let found = self.mandates.iter_mut().find(|mandate| mandate["id"] == id);
        found.map(|mandate| mandate["status"] = json!(status.word())).is_some()
    }

    pub(super) fn chargeback(&mut self, payment: &str) -> bool {
        let Some(amount) = self.payment(payment).map(|payment| payment["amount"].clone()) else { return false };
        self.chargebacks.push(json!({
            "resource": "chargeback",
            "id": format!("chb_{}", self.chargebacks.len() + 1),
            "amount": amount,
            "createdAt": self.time,
            "reversedAt": null,
            "reason": {"code": "MD06", "description": "Refund requested by the account holder"},
            "paymentId": payment,
        }));
        self.set(payment, "amountChargedBack", amount)
    }

    fn make_customer(&mut self, body: &Value) -> Said {
        let mut customer = json!({
            "resource": "customer",
            "id": format!("cst_{}", self.customers.len() + 1),
            "createdAt": self.time,
        });
        take(&mut customer, body, &["name", "email", "metadata"]);
        self.customers.push(customer.clone());
        (201, customer)
    }

    fn make_mandate(&mut self, payment: &Value) -> Value {
        // The method of the first payment determines how later ones are collected.
        let same = payment["method"].as_str().filter(|method| matches!(*method, "creditcard" | "paypal"));
        let method = same.unwrap_or("directdebit");
        // Not the current number of mandates: some were revoked.
        self.mandates_made += 1;
        let id = json!(format!("mdt_{}", self.mandates_made));
        self.mandates.push(json!({
            "resource": "mandate",
            "id": id,
            "status": "valid",
            "method": method,
            "customerId": payment["customerId"],
            "mandateReference": null,
            "signatureDate": self.time.get(..10),
            "createdAt": self.time,
        }));
        id
    }

    fn make_payment(&mut self, body: &Value) -> Said {
        let wrong = |field: &str, detail: &str| error(422, "Unprocessable Entity", detail, field);
        let sequence = body["sequenceType"].as_str().unwrap_or("oneoff");
        let value = body["amount"]["value"].as_str().unwrap_or_default();
        if !value.split_once('.').is_some_and(|(whole, cents)| cents.len() == 2 && digits(whole) && digits(cents)) {
            return wrong("amount", "The amount contains an invalid value");
        }
        if body["description"].as_str().is_none_or(str::is_empty) {
            return wrong("description", "The description is invalid");
        }
        let customer = body["customerId"].as_str();
        if customer.is_none() && sequence != "oneoff" {
            return wrong("customerId", "The customer id is required for this sequence type");
        }
        if customer.is_some_and(|id| by_id(&self.customers, id).is_none()) {
            return wrong("customerId", "The customer id is invalid");
        }
        if sequence != "recurring" && body["redirectUrl"].as_str().is_none() {
            return wrong("redirectUrl", "The 'redirectUrl' field is required");
        }
        let id = format!("tr_{}", self.payments.len() + 1);
        let mut payment = json!({
            "resource": "payment",
            "id": id,
            "mode": "test",
            "createdAt": self.time,
            "status": "open",
            "sequenceType": sequence,
            "_links": {"self": {"href": format!("{}/v2/payments/{id}", self.base), "type": "application/hal+json"}},
        });
        let fields = ["amount", "description", "customerId", "redirectUrl", "webhookUrl", "method", "metadata"];
        take(&mut payment, body, &fields);
        if sequence == "recurring" {
            let mandate = self.mandates_of(customer.unwrap_or_default()).find(|mandate| {
                mandate["status"] == "valid" && (body["mandateId"].is_null() || mandate["id"] == body["mandateId"])
            });
            let Some(mandate) = mandate else {
                return wrong("customerId", "No suitable mandates found for customer");
            };
            payment["status"] = json!("pending");
            payment["mandateId"] = mandate["id"].clone();
            payment["method"] = mandate["method"].clone();
        } else {
            payment["_links"]["checkout"] =
                json!({"href": format!("{}/checkout/{id}", self.base), "type": "text/html"});
        }
        self.payments.push(payment.clone());
        (201, payment)
    }

    fn cancel(&mut self, id: &str) -> Said {
        match self.payment(id).map(|payment| payment["status"].as_str().unwrap_or_default()) {
            None => missing(),
            Some("open" | "pending") => {
                self.set_status(id, &Status::Canceled);
                found(self.payment(id))
            }
            Some(_) => error(422, "Unprocessable Entity", "The payment cannot be canceled", ""),
        }
    }
}

pub(super) fn error(status: u16, title: &str, detail: &str, field: &str) -> Said {
    let mut body = json!({"status": status, "title": title, "detail": detail});
    if !field.is_empty() {
        body["field"] = json!(field);
    }
    (status, body)
}

fn missing() -> Said {
    error(404, "Not Found", "No such thing exists", "")
}

fn found(value: Option<&Value>) -> Said {
    value.map_or_else(missing, |value| (200, value.clone()))
}

/// Newest first.
fn list<'a>(of: &str, values: impl Iterator<Item = &'a Value>) -> Said {
    let mut values: Vec<Value> = values.cloned().collect();
    values.reverse();
    let embedded = Map::from_iter([(of.to_owned(), json!(values))]);
    (200, json!({"count": values.len(), "_embedded": embedded}))
}

fn by_id<'a>(values: &'a [Value], id: &str) -> Option<&'a Value> {
    values.iter().find(|value| value["id"] == id)
}

fn take(into: &mut Value, from: &Value, fields: &[&str]) {
    for field in fields {
        into[*field] = from[*field].clone();
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
