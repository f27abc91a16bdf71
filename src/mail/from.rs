//! Who a mail is from. Whoever may change a corporate identity or a ticket channel writes any name and address into it, so mail has
//! them only if the domain is proven. Otherwise anybody with an account could write as a bank, from the address of the server.

use engine::accounts::Account;
use engine::context::Ctx;
use engine::error::Result;
use engine::registry::registry;
use store::Tx;

use crate::settings::account::UNNAMED;
use crate::settings::email_domain::{DomainStatus, DomainType, Verifier};

/// The sender of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MailFrom {
    /// The name that mail programs show.
    pub name: String,
    /// The address; empty for that of the server.
    pub email: String,
    /// The address that replies go to, or empty.
    pub reply_to: String,
}

impl MailFrom {
    /// Returns the sender for an identity with this name and address: as they are if the domain of the address is verified, else the
    /// name of the account and the address of one of its users: the same one, or that of its oldest owner.
    pub(crate) fn of(tx: &mut Tx, ctx: &Ctx, name: &str, address: &str) -> Result<MailFrom> {
        if is_proven(tx, ctx, address)? {
            return Ok(MailFrom { name: name.to_string(), email: address.to_string(), reply_to: address.to_string() });
        }
        let account = Account::numbered(tx, ctx.account)?.name;
        let users = registry().addresses.map_or(Ok(Vec::new()), |find| find(tx, ctx))?;
        let own = users.iter().find(|own| own.eq_ignore_ascii_case(address)).or(users.first());
        Ok(MailFrom {
            name: if account == UNNAMED { String::new() } else { account },
            email: String::new(),
            reply_to: own.cloned().unwrap_or_default(),
        })
    }
}

/// Whether the domain of an address is proven to be that of the account.
fn is_proven(tx: &mut Tx, ctx: &Ctx, address: &str) -> Result<bool> {
    let host = address.rsplit_once('@').map_or("", |(_, host)| host).to_lowercase();
    let sql = "SELECT count(*) FROM email_domains
               WHERE account_id = $1 AND host = $2 AND status = $3 AND type = $4 AND verified_by <> $5";
    let values = [
        ctx.account.into(),
        (&host).into(),
        DomainStatus::Verified.wire().into(),
        DomainType::Sending.wire().into(),
        Verifier::Nobody.wire().into(),
    ];
    Ok(!host.is_empty() && tx.int(sql, &values)? > 0)
}
