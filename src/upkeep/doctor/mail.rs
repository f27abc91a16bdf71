use dns::Dns;
use engine::config::Config;

use super::Finding;
use crate::mail;

/// The selectors that common mail servers and services use.
const SELECTORS: [&str; 12] =
    ["default", "mail", "dkim", "selector1", "selector2", "google", "s1", "s2", "k1", "k2", "mandrill", "pm"];

/// Connects to the mail server and signs in, without sending anything.
pub fn server(config: &Config) -> Vec<Finding> {
    if config.smtp_host.is_empty() {
        return vec![Finding::advice(
            "mail",
            "No mail is sent: smtp_host is not set.",
            "Set smtp_host, smtp_user and smtp_password. Until then, mail is stored in the data folder.",
        )];
    }
    let place = format!("{}:{}", config.smtp_host, config.smtp_port);
    let checked =
        mail::sender(config).map_err(|error| error.internal.unwrap_or(error.message)).and_then(|sender| sender.check());
    let mut found = vec![match checked {
        Ok(()) if config.smtp_user.is_empty() => {
            let found = format!("{place} accepts the connection. Nobody signs in there, because smtp_user is not set.");
            Finding::fine("mail", found)
        }
        Ok(()) => Finding::fine("mail", format!("{place} accepts the connection and the sign-in.")),
        Err(why) => Finding::problem(
            "mail",
            format!("{place}: {why}"),
            "Check smtp_host, smtp_port, smtp_security, smtp_user and smtp_password; for an own certificate, smtp_ca_file.",
        ),
    }];
    if config.smtp_security == "none" && !["localhost", "127.0.0.1", "::1"].contains(&config.smtp_host.as_str()) {
        let what = format!("Mail and the password go to {place} without encryption.");
        found.push(Finding::problem("mail", what, "Set smtp_security to starttls or tls."));
    }
    found
}

/// The DNS records with which receivers check the sender.
pub async fn records(config: &Config, selectors: &[String]) -> Vec<Finding> {
    if config.smtp_host.is_empty() {
        return Vec::new();
    }
    let Some(domain) = domain_of(&config.mail_from).filter(|domain| !domain.starts_with("localhost")) else {
        let what = format!("mail_from is {}: receivers reject mail from such an address.", config.mail_from);
        return vec![Finding::problem("mail", what, "Set mail_from to an address of your own domain.")];
    };
    let dns = match Dns::new(&config.dns_server) {
        Ok(dns) => dns,
        Err(why) => return vec![Finding::problem("mail", format!("dns_server: {why}."), "Correct the setting.")],
    };
    let spf = match starting_with(&dns, &domain, "v=spf1").await {
        Ok(spf) => spf,
        Err(why) => {
            let what = format!("The records of {domain} cannot be looked up: {why}.");
            return vec![Finding::advice("mail", what, "Check dns_server and the name servers of this machine.")];
        }
    };
    vec![
        of_spf(&domain, &spf),
        of_dkim(&dns, &domain, selectors).await,
        of_dmarc(&domain, &starting_with(&dns, &format!("_dmarc.{domain}"), "v=dmarc1").await.unwrap_or_default()),
    ]
}

/// `Name <info@example.nl>` or `info@example.nl`.
fn domain_of(from: &str) -> Option<String> {
    let address = from.rsplit('<').next()?.trim_end_matches('>').trim();
    let (_, domain) = address.rsplit_once('@')?;
    Some(domain.to_lowercase()).filter(|domain| !domain.is_empty())
}

async fn starting_with(dns: &Dns, name: &str, start: &str) -> Result<Vec<String>, String> {
    let mut found = dns.txt(name).await?;
    found.retain(|text| text.to_lowercase().starts_with(start));
    Ok(found)
}

fn of_spf(domain: &str, found: &[String]) -> Finding {
    match found {
        [] => Finding::advice(
            "mail",
            format!("{domain} has no SPF record: receivers may take your mail for spam."),
            format!(
                "Add a TXT record to {domain} that names your mail server, as your mail provider describes it: v=spf1 include:… ~all"
            ),
        ),
        [one] if one.to_lowercase().contains("+all") => Finding::problem(
            "mail",
            format!("The SPF record of {domain} lets anybody send in your name: {one}"),
            "Replace +all with ~all or -all.",
        ),
        [one] => Finding::fine("mail", format!("{domain} has an SPF record: {one}")),
        _ => Finding::problem(
            "mail",
            format!("{domain} has {} SPF records: receivers ignore all of them.", found.len()),
            "Merge them into one.",
        ),
    }
}

async fn of_dkim(dns: &Dns, domain: &str, given: &[String]) -> Finding {
    let tried: Vec<&str> =
        if given.is_empty() { SELECTORS.to_vec() } else { given.iter().map(String::as_str).collect() };
    for selector in &tried {
        let name = format!("{selector}._domainkey.{domain}");
        let found = dns.txt(&name).await.unwrap_or_default();
        if found.iter().any(|text| text.contains("p=") && !text.trim_end().ends_with("p=")) {
            return Finding::fine("mail", format!("{domain} has a DKIM key with the selector {selector}."));
        }
    }
    if given.is_empty() {
        return Finding::advice(
            "mail",
            format!("No DKIM key of {domain} was found under the common selectors."),
            "If your mail server signs mail, name its selector: kantoor doctor --selector NAME. If not, turn signing on.",
        );
    }
    Finding::problem(
        "mail",
        format!("{domain} has no DKIM key with the selector {}.", tried.join(" or ")),
        "Publish the TXT record that your mail server shows.",
    )
}

fn of_dmarc(domain: &str, found: &[String]) -> Finding {
    match found {
        [] => Finding::advice(
            "mail",
            format!("{domain} has no DMARC record: large receivers expect one."),
            format!("Add a TXT record to _dmarc.{domain}: v=DMARC1; p=none; rua=mailto:you@{domain}"),
        ),
        [one] if !has_policy(one) => Finding::problem(
            "mail",
            format!("The DMARC record of {domain} has no policy (p=), so receivers ignore it: {one}"),
            format!("Add one: v=DMARC1; p=none; rua=mailto:you@{domain}"),
        ),
        [one] => Finding::fine("mail", format!("{domain} has a DMARC record: {one}")),
        _ => {
            let what = format!("{domain} has {} DMARC records: receivers ignore all of them.", found.len());
            Finding::problem("mail", what, "Keep one.")
        }
    }
}

fn has_policy(record: &str) -> bool {
    record.split(';').filter_map(|part| part.split_once('=')).any(|(name, value)| {
        let value = value.trim().to_lowercase();
        name.trim().eq_ignore_ascii_case("p") && ["none", "quarantine", "reject"].contains(&value.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn the_domain_of_a_sender() {
        assert_eq!(domain_of("Van Dijk <Info@Vandijk.NL>").as_deref(), Some("vandijk.nl"));
        assert_eq!(domain_of("info@vandijk.nl").as_deref(), Some("vandijk.nl"));
        assert_eq!((domain_of(""), domain_of("nobody"), domain_of("a@")), (None, None, None));
    }

    #[test]
    fn records_that_receivers_ignore_are_problems() {
        let spf = |texts: &[&str]| of_spf("a.nl", &texts.iter().map(ToString::to_string).collect::<Vec<_>>()).verdict;
        assert_eq!(spf(&[]), Verdict::Advice);
        assert_eq!(spf(&["v=spf1 include:mail.nl ~all"]), Verdict::Fine);
        assert_eq!(spf(&["v=spf1 +all"]), Verdict::Problem);
        assert_eq!(spf(&["v=spf1 ~all", "v=spf1 -all"]), Verdict::Problem);
        let dmarc =
            |texts: &[&str]| of_dmarc("a.nl", &texts.iter().map(ToString::to_string).collect::<Vec<_>>()).verdict;
        assert_eq!((dmarc(&[]), dmarc(&["v=DMARC1; p=none"])), (Verdict::Advice, Verdict::Fine));
        assert_eq!(dmarc(&["v=DMARC1; p=none", "v=DMARC1; p=reject"]), Verdict::Problem);
        assert_eq!(dmarc(&["v=DMARC1;rua=mailto:a@a.nl; P = Reject ;"]), Verdict::Fine);
        for ignored in ["v=DMARC1", "v=DMARC1; p=", "v=DMARC1; sp=none; p=all"] {
            assert_eq!(dmarc(&[ignored]), Verdict::Problem, "{ignored}");
        }
    }
}
