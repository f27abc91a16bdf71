//! Adding a passkey.

use engine::error::{Error, FieldCode, Result, violation};
use engine::random;
use passkeys::{ALGORITHMS, Registration, decode, encode};
use serde_json::{Value, json};

use crate::people::entering::Visit;
use crate::people::factor::{Factor, Method};
use crate::people::passkey::{PATIENCE_MS, Stored, bytes, credentials, own_site};
use crate::people::session::Held;

impl Visit {
    /// Starts the enrolment of a passkey; returns its id and what the browser needs.
    pub async fn begin_passkey(&self, held: &Held) -> Result<(String, Value)> {
        held.check_confirmed(self.app.clock.now())?;
        let own = own_site(&self.app.site)?;
        let (person, known) = (self.person(held).await?, self.factors(held).await?.all);
        let (id, credential) = (self.app.ids.next(), encode(&random::bytes::<32>()?));
        let kinds: Vec<Value> = ALGORITHMS.iter().map(|number| json!({"type": "public-key", "alg": number})).collect();
        let options = json!({
            "challenge": credential,
            "rp": {"id": own.id, "name": "Kantoor"},
            "user": {"id": encode(person.id.as_bytes()), "name": person.email, "displayName": held.key.name},
            "pubKeyCredParams": kinds,
            "excludeCredentials": credentials(&known),
            "authenticatorSelection": {"residentKey": "discouraged", "userVerification": "preferred"},
            "attestation": "none",
            "timeout": PATIENCE_MS,
        });
        let factor = Factor { credential, ..Factor::new(id.clone(), Method::Passkey, self.app.clock.now()) };
        self.begin(held, factor).await?;
        Ok((id, options))
    }

    /// Completes the enrolment of a passkey. Returns the recovery codes if it is the first factor.
    pub async fn complete_passkey(
        &self,
        held: &Held,
        id: &str,
        name: &str,
        client_data: &str,
        authenticator_data: &str,
    ) -> Result<Vec<String>> {
        let own = own_site(&self.app.site)?;
        let registration = Registration {
            client_data: bytes("client_data", client_data)?,
            authenticator_data: bytes("authenticator_data", authenticator_data)?,
        };
        let name = if name.trim().is_empty() { "Passkey".to_string() } else { name.trim().to_string() };
        let added = self.add(held, id, Method::Passkey, move |factor, _| {
            let challenge = decode(&factor.credential).unwrap_or_default();
            let made = passkeys::register(&own, &challenge, &registration).map_err(|why| {
                Error::field("authenticator_data", violation(FieldCode::InvalidFormat, format!("was rejected: {why}")))
            })?;
            let stored = Stored { id: encode(&made.id), key: encode(&made.key) };
            let credential = serde_json::to_string(&stored).map_err(|error| Error::internal(error.to_string()))?;
            Ok(Factor { name: name.clone(), credential, counter: made.counter.into(), ..factor.clone() })
        });
        added.await
    }
}
