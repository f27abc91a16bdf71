//! Tokens with each claim falsified in turn, and a token of OpenSSL.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_010;
const EXPECTED: Expected = Expected { issuer: "https://issuer.example", client_id: "kantoor", nonce: "n", now: NOW };

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

struct Issuer(EcdsaKeyPair);

impl Issuer {
    fn new() -> Issuer {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Issuer(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap())
    }

    fn keys(&self) -> Keys {
        let point = self.0.public_key().as_ref();
        let key =
            json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": encode(&point[1..33]), "y": encode(&point[33..])});
        Keys::read(json!({"keys": [{"kty": "OKP", "crv": "X25519"}, key]}).to_string().as_bytes()).unwrap()
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", encode(signature.as_ref()))
    }
}

fn claims() -> Value {
    json!({
        "iss": "https://issuer.example", "sub": "1", "aud": "kantoor", "exp": NOW + 300, "iat": NOW, "nonce": "n",
        "email": "olga@a.example", "email_verified": true,
    })
}

#[test]
fn a_token_names_a_person() {
    let issuer = Issuer::new();
    let read = |header: Value, claims: &Value| Claims::of(&issuer.token(&header, claims), &issuer.keys(), &EXPECTED);
    let person = Claims { email: "olga@a.example".to_string(), signed_in_at: None };
    for header in [json!({"alg": "ES256", "kid": "k"}), json!({"alg": "ES256"})] {
        assert_eq!(read(header, &claims()).unwrap(), person);
    }
    for (claim, value, why) in [
        ("iss", json!("https://other.example"), "another issuer"),
        ("aud", json!("other"), "another client"),
        ("aud", json!(["other"]), "another client"),
        ("aud", json!(["kantoor", "other"]), "another client"),
        ("azp", json!("other"), "another client"),
        ("aud", json!({}), "another client"),
        ("nonce", json!("m"), "another attempt"),
        ("nonce", json!(""), "another attempt"),
        ("exp", json!(NOW - 60), "expired"),
        ("iat", json!(NOW - 600), "expired"),
        ("iat", json!(NOW + 61), "not valid yet"),
        ("nbf", json!(NOW + 61), "not valid yet"),
        ("exp", json!("soon"), "a claim is wrong"),
        ("email_verified", json!(false), "no verified e-mail"),
        ("email_verified", json!(null), "no verified e-mail"),
        ("email", json!(""), "no verified e-mail"),
    ] {
        let mut changed = claims();
        changed[claim] = value;
        let refused = read(json!({"alg": "ES256"}), &changed).unwrap_err().0;
        assert!(refused.contains(why), "{changed}: {refused}");
    }
    let mut shared = claims();
    (shared["aud"], shared["azp"]) = (json!(["kantoor", "other"]), json!("kantoor"));
    assert_eq!(read(json!({"alg": "ES256"}), &shared).unwrap(), person);
}

#[test]
fn a_token_cannot_choose_how_it_is_checked() {
    let issuer = Issuer::new();
    let why = |token: &str| Claims::of(token, &issuer.keys(), &EXPECTED).unwrap_err().0;
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "HS256"}),
        json!({"alg": "RS256"}),
        json!({"alg": "ES256", "kid": "other"}),
        json!({"alg": "an unknown algorithm"}),
        json!({"alg": "ES256", "crit": ["x"]}),
    ] {
        let refused = why(&issuer.token(&header, &claims()));
        assert!(
            refused.contains("no key") || refused.contains("critical") || refused.contains("signature"),
            "{refused}"
        );
    }
    assert_eq!(why(&Issuer::new().token(&json!({"alg": "ES256"}), &claims())), "the signature is wrong");
    let good = issuer.token(&json!({"alg": "ES256"}), &claims());
    let unsigned = format!("{}.", good.rsplit_once('.').unwrap().0);
    assert_eq!(why(&unsigned), "the signature is wrong");
    for bad in ["", ".", "..", "a.b.c", "x"] {
        assert_eq!(why(bad), "it is not a signed token", "{bad}");
    }
}

#[test]
fn an_issuer_with_https_uses_it_everywhere() {
    let read = |issuer: &str, keys: &str| {
        let description = json!({
            "issuer": issuer, "authorization_endpoint": format!("{issuer}/a"), "token_endpoint": format!("{issuer}/t"),
            "jwks_uri": keys,
        });
        crate::Discovery::read("https://issuer.example", description.to_string().as_bytes()).map(drop)
    };
    assert_eq!(read("https://issuer.example", "https://keys.example/k"), Ok(()));
    let plain = read("https://issuer.example", "http://issuer.example/k").unwrap_err();
    assert_eq!(plain.0, "one of its endpoints has no HTTPS");
    assert_eq!(
        read("https://other.example", "https://other.example/k").unwrap_err().0,
        "it calls itself https://other.example"
    );
}

#[test]
fn a_token_of_another_program_is_read() {
    let keys = json!({"keys": [{"kty": "RSA", "use": "sig", "kid": "r1", "e": "AQAB", "n": RSA_MODULUS}]});
    let keys = Keys::read(keys.to_string().as_bytes()).unwrap();
    let read = Claims::of(RSA_TOKEN, &keys, &EXPECTED).unwrap();
    assert_eq!(read.email, "Olga@A.example");
    let changed = RSA_TOKEN.replace(".eyJ", ".eyK");
    assert!(Claims::of(&changed, &keys, &EXPECTED).is_err());
}

const RSA_MODULUS: &str = "2f3F1jrpuidUriGk7-QEbhefnWv7BvQThSSxaJhvqzFCM_CsVIyeO_Bz63ILuhe5EjxJFZMSVDWbevT5dchlvf1m6wLC9yYMqRVzQ-10B-xBDBTLD2sYE5sZ73dQmA4DajkeXfZDd8qS16AZSIWQsv6HEDKBKj9MLNRH2kD5TOjBQRWR405lXy2nE-EJMcoRFYC0U56puX5iNQCi4H6tLYWiPC4Jm4umbzMijEgKNmklkjcIbEb6G0I4jsPBPFhCS3gKgDcgY1oJaoMqnyfadSTT5oYwSX_5XQ7VlGuZf2zRK1nw-_8F0gUe6XoeV9qGq4daWjWO2QCjSWVrmZvlAw";
const RSA_TOKEN: &str = "eyJhbGciOiAiUlMyNTYiLCAia2lkIjogInIxIn0.eyJpc3MiOiAiaHR0cHM6Ly9pc3N1ZXIuZXhhbXBsZSIsICJzdWIiOiAiMSIsICJhdWQiOiBbImthbnRvb3IiXSwgImV4cCI6IDE4MDAwMDAzMDAsICJpYXQiOiAxODAwMDAwMDAwLCAibm9uY2UiOiAibiIsICJlbWFpbCI6ICJPbGdhQEEuZXhhbXBsZSIsICJlbWFpbF92ZXJpZmllZCI6ICJ0cnVlIn0.NnF2Yn3JYRFu12a0MX6lY_DSB4ATWPzbVOVGtnEjN_54-DZ2xTOhj-w_xGGGO1SPlfTR0zdmUwbg565HJm_ANejQ6NxGDGU4aa8P6C-boZ-0mLg5NwIqpbOIkqxwEno0-BVZYjKRMBL9RefmtwoCW81fxvsz-PnidrHNigJEre4fhvGZnQ2m8KiEC-K7k4s6ADy2vnoWRzm0TWWCtGyFfbjcVy9GINeWX1A7TM6WxSe5qRnnQJJ4swh9pm4ru3Ki4GLB22xO8MAppt2uyvlHMrnwe7l_ug-GUWaJeSlMqPwR-i9SJPtNrIqyTXf0Z9m5oeShllnXu9lV9ovp1NTE-A";
