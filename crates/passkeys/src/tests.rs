//! A software authenticator signs, and each part of its answer is falsified in turn.

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

use super::*;

const CHALLENGE: &[u8] = b"sixteen bytes or";

fn site() -> Site {
    Site { id: "kantoor.example".to_string(), origin: "https://kantoor.example".to_string() }
}

fn client_data(kind: &str, challenge: &[u8], origin: &str) -> Vec<u8> {
    let challenge = encode(challenge);
    serde_json::json!({"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": false, "more": 1})
        .to_string()
        .into_bytes()
}

fn authenticator_data(host: &str, flags: u8, counter: u32, credential: &[u8]) -> Vec<u8> {
    let mut data = Sha256::digest(host.as_bytes()).to_vec();
    data.push(flags);
    data.extend_from_slice(&counter.to_be_bytes());
    data.extend_from_slice(credential);
    data
}

enum Authenticator {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Authenticator {
    fn p256() -> Authenticator {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Authenticator::P256(pair)
    }

    fn ed25519() -> Authenticator {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Authenticator::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    fn cose(&self) -> Vec<u8> {
        match self {
            Authenticator::P256(pair) => {
                let point = pair.public_key().as_ref();
                let start = [0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20];
                [&start[..], &point[1..33], &[0x22, 0x58, 0x20], &point[33..]].concat()
            }
            Authenticator::Ed25519(pair) => {
                [&[0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 0x20], pair.public_key().as_ref()].concat()
            }
        }
    }

    fn registration(&self) -> Registration {
        let credential = [&[0; 16], &[0, 2][..], b"id", &self.cose()].concat();
        Registration {
            client_data: client_data("webauthn.create", CHALLENGE, "https://kantoor.example"),
            authenticator_data: authenticator_data("kantoor.example", 0x41, 0, &credential),
        }
    }

    fn assertion(&self, counter: u32) -> Assertion {
        let client_data = client_data("webauthn.get", CHALLENGE, "https://kantoor.example");
        let authenticator_data = authenticator_data("kantoor.example", 0x05, counter, &[]);
        self.signed(client_data, authenticator_data)
    }

    fn signed(&self, client_data: Vec<u8>, authenticator_data: Vec<u8>) -> Assertion {
        let message = [&authenticator_data[..], &Sha256::digest(&client_data)].concat();
        let signature = match self {
            Authenticator::P256(pair) => pair.sign(&SystemRandom::new(), &message).unwrap().as_ref().to_vec(),
            Authenticator::Ed25519(pair) => pair.sign(&message).as_ref().to_vec(),
        };
        Assertion { client_data, authenticator_data, signature }
    }
}

#[test]
fn a_passkey_is_registered_and_used() {
    for authenticator in [Authenticator::p256(), Authenticator::ed25519()] {
        let passkey = register(&site(), CHALLENGE, &authenticator.registration()).unwrap();
        assert_eq!((passkey.id.as_slice(), passkey.counter), (&b"id"[..], 0));
        assert_eq!(verify(&site(), CHALLENGE, &passkey, &authenticator.assertion(0)), Ok(0));
        assert_eq!(verify(&site(), CHALLENGE, &passkey, &authenticator.assertion(7)), Ok(7));
        let used = Passkey { counter: 7, ..passkey };
        for copied in [0, 6, 7] {
            let why = verify(&site(), CHALLENGE, &used, &authenticator.assertion(copied)).unwrap_err();
            assert!(why.0.contains("copied"), "{why}");
        }
        assert_eq!(verify(&site(), CHALLENGE, &used, &authenticator.assertion(8)), Ok(8));
    }
}

#[test]
fn another_key_challenge_site_or_purpose_is_rejected() {
    let (own, other) = (Authenticator::p256(), Authenticator::p256());
    let passkey = register(&site(), CHALLENGE, &own.registration()).unwrap();
    let why = |assertion: &Assertion| verify(&site(), CHALLENGE, &passkey, assertion).unwrap_err().0;
    assert_eq!(why(&other.assertion(1)), "the signature is wrong");
    let data = |host: &str, flags: u8| authenticator_data(host, flags, 1, &[]);
    let client = |kind: &str, challenge: &[u8], origin: &str| client_data(kind, challenge, origin);
    let good = client("webauthn.get", CHALLENGE, "https://kantoor.example");
    for (client_data, authenticator_data, expected) in [
        (
            client("webauthn.create", CHALLENGE, "https://kantoor.example"),
            data("kantoor.example", 5),
            "another request",
        ),
        (
            client("webauthn.get", b"another", "https://kantoor.example"),
            data("kantoor.example", 5),
            "another challenge",
        ),
        (client("webauthn.get", CHALLENGE, "https://kantoor.evil"), data("kantoor.example", 5), "another site"),
        (client("webauthn.get", CHALLENGE, "http://kantoor.example"), data("kantoor.example", 5), "another site"),
        (good.clone(), data("kantoor.evil", 5), "the key of another site"),
        (good.clone(), data("kantoor.example", 4), "nobody was present"),
        (good.clone(), Vec::new(), "too short"),
        (b"x".to_vec(), data("kantoor.example", 5), "not JSON"),
    ] {
        let refused = why(&own.signed(client_data, authenticator_data));
        assert!(refused.contains(expected), "{refused}");
    }
    let framed = br#"{"type":"webauthn.get","challenge":"c2l4dGVlbiBieXRlcyBvcg","origin":"https://kantoor.example","crossOrigin":true}"#;
    assert!(why(&own.signed(framed.to_vec(), data("kantoor.example", 5))).contains("another site"));
}

#[test]
fn changed_bytes_are_rejected() {
    let own = Authenticator::p256();
    let passkey = register(&site(), CHALLENGE, &own.registration()).unwrap();
    let good = own.assertion(1);
    for at in 0..good.authenticator_data.len() {
        let mut changed = good.clone();
        changed.authenticator_data[at] ^= 0x10;
        assert!(verify(&site(), CHALLENGE, &passkey, &changed).is_err(), "byte {at}");
    }
    for at in 0..good.signature.len() {
        let mut changed = good.clone();
        changed.signature[at] ^= 1;
        assert!(verify(&site(), CHALLENGE, &passkey, &changed).is_err(), "byte {at}");
    }
    let registration = own.registration();
    for length in 0..registration.authenticator_data.len() {
        let cut = registration.authenticator_data[..length].to_vec();
        assert!(
            register(&site(), CHALLENGE, &Registration { authenticator_data: cut, ..registration.clone() }).is_err()
        );
    }
    // Extensions may follow the key, if the flags say so.
    let longer = |flags: u8| {
        let mut longer = registration.clone();
        longer.authenticator_data[32] = flags;
        longer.authenticator_data.extend_from_slice(&[0xa1, 0x01, 0x02]);
        register(&site(), CHALLENGE, &longer)
    };
    assert_eq!(longer(0xc1).unwrap(), passkey);
    assert_eq!(longer(0x41), Err(Refused("something follows its key")));
    let mut without_key = registration.clone();
    without_key.authenticator_data = authenticator_data("kantoor.example", 1, 0, &[]);
    assert_eq!(register(&site(), CHALLENGE, &without_key), Err(Refused("there is no new key in it")));
}

/// The answer of an authenticator with this COSE key.
fn registered(cose: &[u8]) -> Result<Passkey, Refused> {
    let credential = [&[0; 16], &[0, 2][..], b"id", cose].concat();
    let registration = Registration {
        client_data: client_data("webauthn.create", CHALLENGE, "https://kantoor.example"),
        authenticator_data: authenticator_data("kantoor.example", 0x41, 0, &credential),
    };
    register(&site(), CHALLENGE, &registration)
}

#[test]
fn a_key_that_is_not_on_its_curve_is_rejected() {
    let off_curve = Err(Refused("its key is not a point on the curve"));
    let own = Authenticator::p256().cose();
    assert!(registered(&own).is_ok());
    // Another y, another x, and nothing but zeros or ones.
    for change in [(own.len() - 1, 1), (12, 1), (own.len() - 32, 0x80)] {
        let mut changed = own.clone();
        changed[change.0] ^= change.1;
        assert_eq!(registered(&changed), off_curve, "byte {}", change.0);
    }
    for fill in [0, 0xff] {
        let mut changed = own.clone();
        changed[10..42].fill(fill);
        changed[45..].fill(fill);
        assert_eq!(registered(&changed), off_curve, "{fill}");
    }
    let own = Authenticator::ed25519().cose();
    assert!(registered(&own).is_ok());
    let with = |y: [u8; 32]| registered(&[&own[..10], &y].concat());
    let small = |low: u8, rest: u8, high: u8| {
        let mut y = [rest; 32];
        (y[0], y[31]) = (low, high);
        y
    };
    // 2 is not on the curve; 0, 1 and -1 have a small order, as has the point after them; the last writes 1 in another way.
    let of_order_eight = [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ];
    for y in [
        small(2, 0, 0),
        small(0, 0, 0),
        small(1, 0, 0),
        small(0xec, 0xff, 0x7f),
        of_order_eight,
        small(0xee, 0xff, 0x7f),
    ] {
        assert_eq!(with(y), off_curve, "{y:?}");
    }
}

#[test]
fn an_rsa_key_of_an_odd_size_is_rejected() {
    let cose = |n: &[u8], e: [u8; 3]| {
        let length = u16::try_from(n.len()).unwrap().to_be_bytes();
        [&[0xa4, 1, 3, 3, 0x39, 1, 0, 0x20, 0x59][..], &length, n, &[0x21, 0x43], &e].concat()
    };
    let n = decode(RSA_MODULUS).unwrap();
    assert!(registered(&cose(&n, [1, 0, 1])).is_ok());
    let (mut even, mut short) = (n.clone(), n.clone());
    *even.last_mut().unwrap() ^= 1;
    short[0] = 0x7f;
    let padded = [&[0][..], &n].concat();
    for (n, e) in [
        (&n, [1, 0, 0]),
        (&n, [0, 0, 3]),
        (&n, [0, 0, 1]),
        (&even, [1, 0, 1]),
        (&short, [1, 0, 1]),
        (&padded, [1, 0, 1]),
        (&n[..128].to_vec(), [1, 0, 1]),
        (&n.repeat(5), [1, 0, 1]),
    ] {
        assert_eq!(registered(&cose(n, e)), Err(Refused("its key is no RSA key")), "{} bytes, {e:?}", n.len());
    }
}

#[test]
fn an_rsa_key_of_another_program_is_read() {
    let (n, signature) = (decode(RSA_MODULUS).unwrap(), decode(RSA_SIGNATURE).unwrap());
    let cose = [&[0xa4, 1, 3, 3, 0x39, 1, 0, 0x20, 0x59, 1, 0][..], &n, &[0x21, 0x43, 1, 0, 1]].concat();
    let key = Key::parse(&cose).unwrap();
    assert_eq!(key, Key::Rs256(&n, &[1, 0, 1]));
    assert!(Key::parse(&cose[..cose.len() - 1]).is_err());
    assert_eq!(key.verify(b"signed by Windows Hello", &signature), Ok(()));
    assert!(key.verify(b"signed by windows Hello", &signature).is_err());
    assert!(key.verify(b"signed by Windows Hello", &[1; 256]).is_err());
}

const RSA_MODULUS: &str = "vkh8hPVdlOnYqBGsX3LHKX0LfPRU165b6zXJ9O_svtAgOdZrIUKxlquq-EgQLcVeTjkYposDGAhhWRDhDL4rsBC_MsP-DkqPNO95xG1WyJEBZ0OKcr3xDVQPLomAN81HhFoqZVi1QFHPkZiwlxLrV5Ud7fmlmFLhmXnurKgKAbkESzIskK_V50Usu5rqCkUyH2OC-NKjtIO3Eq7yWyvex6g4s2G7e8tXtuaVTsfN8Kh3F3EjLIXOVedEtE0_U4DPHza2bsXz6dOlQQUv6xm_GqbbVmCN3wdvm2WDHYiRpuLLhJwdJ6HyYt_2U4K0tGqUFyhsnDtg8NJ97K-i9RKcbw";
const RSA_SIGNATURE: &str = "rR3Y8wdi5t66YQpx9n0CKleMSFVSQckJS1IC8k_wLDl91JtReDwe_-KDKfwtvVI4MF4op-DcmB2RycdqSPgTZS4TlW6fLfHTgxd9RFRkZy7aVwWcX1P_T8u3Dx3YPoqrf4rpZml04nMGpIY1_avadZ5nUxDm7OxXUVJH--oY_YOUsLLyU3WQnYbvoAVyKN1NfJ1X685dg7DyL2eabcPOzkZk3gokL3xqU68Mzek1M_7vG2wytUCDGYe0y1Wd_PsdHjzZy52eXk7uzBVNcq9nah84-rtoAD6PygeJ1ITFu68EK5YQivRQuk1Oh7-iNdmD6I9Ah28msZstojkZ4eGPww";
