//! Public keys. Authenticators write them in the canonical encoding of CTAP 2, in which each type of key has one form.

use curve25519_dalek::edwards::CompressedEdwardsY;
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, agree_ephemeral};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

use crate::Refused;

/// The algorithms that are accepted, by their COSE numbers, preferred first: ES256, Ed25519 and RS256 (Windows Hello).
pub const ALGORITHMS: [i32; 3] = [-7, -8, -257];

/// What precedes x of a P-256 key: {1: 2, 3: -7, -1: 1, -2: bytes(32)}, and y: {-3: bytes(32)}.
const P256_X: &[u8] = &[0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20];
const P256_Y: &[u8] = &[0x22, 0x58, 0x20];
/// What precedes an Ed25519 key: {1: 1, 3: -8, -1: 6, -2: bytes(32)}.
const ED25519_X: &[u8] = &[0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21, 0x58, 0x20];
/// What precedes the modulus of an RSA key: {1: 3, 3: -257, -1: bytes with a length of two bytes}, and its exponent.
const RSA_N: &[u8] = &[0xa4, 0x01, 0x03, 0x03, 0x39, 0x01, 0x00, 0x20, 0x59];
const RSA_E: &[u8] = &[0x21, 0x43];

const OFF_CURVE: Refused = Refused("its key is not a point on the curve");

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key<'k> {
    /// ECDSA with P-256 and SHA-256: an uncompressed point.
    Es256(Vec<u8>),
    /// Ed25519.
    Ed25519(&'k [u8]),
    /// RSA with PKCS #1 1.5 and SHA-256: modulus and exponent.
    Rs256(&'k [u8], &'k [u8]),
}

impl<'k> Key<'k> {
    /// Reads a COSE key.
    pub fn parse(cose: &'k [u8]) -> Result<Key<'k>, Refused> {
        match Key::split(cose)? {
            (key, []) => Ok(key),
            _ => Err(Refused("something follows its key")),
        }
    }

    /// Reads a COSE key; returns it with what follows.
    pub(crate) fn split(cose: &'k [u8]) -> Result<(Key<'k>, &'k [u8]), Refused> {
        let read = || {
            if let Some(rest) = cose.strip_prefix(P256_X) {
                let (x, rest) = rest.split_at_checked(32)?;
                let (y, rest) = rest.strip_prefix(P256_Y)?.split_at_checked(32)?;
                return Some((Key::Es256([&[4], x, y].concat()), rest));
            }
            if let Some(rest) = cose.strip_prefix(ED25519_X) {
                let (x, rest) = rest.split_at_checked(32)?;
                return Some((Key::Ed25519(x), rest));
            }
            let (length, rest) = cose.strip_prefix(RSA_N)?.split_first_chunk()?;
            let (n, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            let (e, rest) = rest.strip_prefix(RSA_E)?.split_at_checked(3)?;
            Some((Key::Rs256(n, e), rest))
        };
        read().ok_or(Refused("its key has an unknown type"))
    }

    /// Rejects a key that nobody can have made as the standards ask: a point that is not on the curve or in its main group, or numbers
    /// that are no RSA key of a usual size. Signatures that verify with such a key prove nothing.
    pub fn check(&self) -> Result<(), Refused> {
        match self {
            // An agreement checks the other point first.
            Key::Es256(point) => {
                let random = SystemRandom::new();
                let own =
                    EphemeralPrivateKey::generate(&ECDH_P256, &random).map_err(|_| Refused("no random numbers"))?;
                let other = ring::agreement::UnparsedPublicKey::new(&ECDH_P256, point);
                agree_ephemeral(own, &other, |_| ()).map_err(|_| OFF_CURVE)
            }
            Key::Ed25519(key) => {
                let point = CompressedEdwardsY::from_slice(key).ok().and_then(|own| Some((own, own.decompress()?)));
                let (own, point) = point.ok_or(OFF_CURVE)?;
                let is_usual = !point.is_small_order() && point.is_torsion_free() && point.compress() == own;
                if is_usual { Ok(()) } else { Err(OFF_CURVE) }
            }
            Key::Rs256(n, e) => {
                let is_odd = |number: &[u8]| number.last().is_some_and(|byte| byte % 2 == 1);
                let is_full = |number: &[u8]| number.first().is_some_and(|byte| *byte > 0);
                // 2048 to 8192 bits, and an exponent of 65537 or more in its three bytes.
                let is_usual = [*n, *e].iter().all(|number| is_odd(number) && is_full(number))
                    && (256..=1024).contains(&n.len())
                    && (n.len() > 256 || n.first().is_some_and(|byte| *byte >= 0x80));
                if is_usual { Ok(()) } else { Err(Refused("its key is no RSA key")) }
            }
        }
    }

    /// Checks a signature.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Refused> {
        let checked = match self {
            Key::Es256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature),
            Key::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
            Key::Rs256(n, e) => RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
        };
        checked.map_err(|_| Refused("the signature is wrong"))
    }
}
