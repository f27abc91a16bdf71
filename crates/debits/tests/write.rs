//! The file for a bank: rejections, sums, and validity against the public schema.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use debits::{Batch, Creditor, Debit, Scheme, Sequence, creditor_id_is_valid, write};
use jiff::civil::date;
use money::Amount;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use quick_xml::Reader;
use quick_xml::events::Event;

fn debit(amount: &str) -> Debit {
    Debit {
        end_to_end_id: "2026/0042".into(),
        amount: amount.parse().unwrap(),
        mandate_id: "M-17".into(),
        mandate_date: date(2025, 3, 1),
        sequence: Sequence::Recurring,
        debtor_name: "Zoë van der Ploeg".into(),
        debtor_iban: "NL91 ABNA 0417 1643 00".into(),
        debtor_bic: None,
        text: "Invoice 2026/0042".into(),
    }
}

fn batch(debits: Vec<Debit>) -> Batch {
    Batch {
        message_id: "RUN-2026-10-01".into(),
        created: date(2026, 9, 24).at(16, 5, 9, 123_456_789),
        collection_date: date(2026, 10, 1),
        scheme: Scheme::Core,
        creditor: Creditor {
            name: "Bakkerij De Graaf & Zn.".into(),
            iban: "NL02ABNA0123456789".into(),
            bic: Some("ABNANL2A".into()),
            creditor_id: "NL69ZZZ123456780000".into(),
        },
        debits,
    }
}

/// Returns the texts of all elements of a file, with their names.
fn elements(xml: &str) -> Vec<(String, String)> {
    let mut reader = Reader::from_str(xml);
    let (mut found, mut open) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => open.push((String::from_utf8(start.name().0.to_vec()).unwrap(), String::new())),
            Event::Text(text) => append(&mut open, &text.decode().unwrap()),
            // The only escape that the character set of the scheme can need.
            Event::GeneralRef(name) if &*name == b"apos" => append(&mut open, "'"),
            Event::End(_) => found.extend(open.pop()),
            Event::Decl(_) => {}
            Event::Eof => return found,
            other => panic!("{other:?} has no place in such a file"),
        }
    }
}

fn append(open: &mut [(String, String)], text: &str) {
    if let Some((_, content)) = open.last_mut() {
        content.push_str(text);
    }
}

fn all(xml: &str, name: &str) -> Vec<String> {
    elements(xml).into_iter().filter(|(of, _)| of == name).map(|(_, text)| text).collect()
}

#[test]
fn groups_debits_by_sequence() {
    let of = |sequence, amount| Debit { sequence, ..debit(amount) };
    let xml = write(&batch(vec![
        of(Sequence::OneOff, "0.01"),
        of(Sequence::Recurring, "10.10"),
        of(Sequence::First, "20"),
        of(Sequence::Recurring, "0.20"),
        of(Sequence::Final, "999999999.99"),
    ]))
    .unwrap();
    assert_eq!(all(&xml, "SeqTp"), ["FRST", "RCUR", "FNAL", "OOFF"]);
    // The whole file first, then each group.
    assert_eq!(all(&xml, "NbOfTxs"), ["5", "1", "2", "1", "1"]);
    assert_eq!(all(&xml, "CtrlSum"), ["1000000030.30", "20.00", "10.30", "999999999.99", "0.01"]);
    assert_eq!(all(&xml, "InstdAmt"), ["20.00", "10.10", "0.20", "999999999.99", "0.01"]);
    assert_eq!(all(&xml, "PmtInfId"), ["RUN-2026-10-01-1", "RUN-2026-10-01-2", "RUN-2026-10-01-3", "RUN-2026-10-01-4"]);
    assert_eq!(all(&xml, "ReqdColltnDt"), ["2026-10-01"; 4]);
    assert_eq!(all(&xml, "CreDtTm"), ["2026-09-24T16:05:09"]);
    assert_eq!(all(&xml, "Nm")[0], "Bakkerij De Graaf + Zn.");
    assert_eq!(all(&xml, "Dbtr"), [""; 5]);
    assert_eq!(all(&xml, "IBAN")[1], "NL91ABNA0417164300");
}

#[test]
fn the_scheme_is_that_of_the_mandates() {
    let core = write(&batch(vec![debit("5")])).unwrap();
    let b2b = write(&Batch { scheme: Scheme::B2b, ..batch(vec![debit("5")]) }).unwrap();
    assert!(core.contains("<LclInstrm><Cd>CORE</Cd></LclInstrm>"));
    assert!(b2b.contains("<LclInstrm><Cd>B2B</Cd></LclInstrm>"));
}

#[test]
fn rejects_what_a_bank_would_reject() {
    let refusal = |change: &dyn Fn(&mut Batch)| {
        let mut batch = batch(vec![debit("5"), debit("6")]);
        change(&mut batch);
        let invalid = write(&batch).unwrap_err();
        (invalid.debit, invalid.field, invalid.to_string())
    };
    let second = |change: &dyn Fn(&mut Debit)| {
        let (index, field, reason) = refusal(&|batch| change(&mut batch.debits[1]));
        assert_eq!(index, Some(1));
        format!("{field}: {reason}")
    };
    let whole = |change: &dyn Fn(&mut Batch)| {
        let (index, field, reason) = refusal(change);
        assert_eq!(index, None);
        format!("{field}: {reason}")
    };

    assert_eq!(
        second(&|debit| debit.debtor_iban = "NL92ABNA0417164300".into()),
        r#"debtor_iban: Debit 2: The IBAN of the debtor is not valid: "NL92ABNA0417164300"."#
    );
    assert_eq!(
        second(&|debit| debit.debtor_iban = "TR330006100519786457841326".into()),
        r#"debtor_iban: Debit 2: The IBAN of the debtor belongs to a country outside SEPA: "TR330006100519786457841326"."#
    );
    assert_eq!(
        second(&|debit| debit.debtor_bic = Some("ABNA".into())),
        r#"debtor_bic: Debit 2: The BIC of the debtor is not valid: "ABNA"."#
    );
    assert_eq!(
        second(&|debit| debit.amount = Amount::ZERO),
        "amount: Debit 2: The amount must be greater than zero; it is 0."
    );
    assert_eq!(
        second(&|debit| debit.amount = "-12.5".parse().unwrap()),
        "amount: Debit 2: The amount must be greater than zero; it is -12.5."
    );
    assert_eq!(
        second(&|debit| debit.amount = "1000000000".parse().unwrap()),
        "amount: Debit 2: The amount must be less than one billion euros; it is 1000000000."
    );
    assert_eq!(second(&|debit| debit.mandate_id = " ".into()), "mandate_id: Debit 2: The mandate id is missing.");
    assert_eq!(second(&|debit| debit.end_to_end_id = "/".into()), "end_to_end_id: Debit 2: The reference is missing.");
    assert_eq!(second(&|debit| debit.debtor_name.clear()), "debtor_name: Debit 2: The name of the debtor is missing.");
    assert_eq!(
        second(&|debit| debit.mandate_date = date(2026, 10, 2)),
        "mandate_date: Debit 2: The mandate was signed on 2026-10-02, after the collection on 2026-10-01."
    );
    assert_eq!(
        second(&|debit| debit.mandate_date = date(-44, 3, 15)),
        "mandate_date: Debit 2: The date of the mandate is before the year 1."
    );

    assert_eq!(whole(&|batch| batch.debits.clear()), "debits: There is nothing to collect: the batch is empty.");
    assert_eq!(whole(&|batch| batch.message_id.clear()), "message_id: The message id is missing.");
    assert_eq!(whole(&|batch| batch.creditor.name.clear()), "creditor.name: The name of the creditor is missing.");
    assert_eq!(
        whole(&|batch| batch.creditor.iban = "12345".into()),
        r#"creditor.iban: The IBAN of the creditor is not valid: "12345"."#
    );
    assert_eq!(
        whole(&|batch| batch.creditor.creditor_id = "NL70ZZZ123456780000".into()),
        r#"creditor.creditor_id: The creditor identifier is not valid: "NL70ZZZ123456780000". Look it up at your bank."#
    );
    assert_eq!(
        whole(&|batch| batch.collection_date = date(0, 1, 1)),
        "collection_date: The collection date is before the year 1."
    );
}

#[test]
fn validates_creditor_identifiers_without_the_business_code() {
    assert!(creditor_id_is_valid("DE98ZZZ09999999999"));
    assert!(creditor_id_is_valid("DE98ABC09999999999"));
    assert!(creditor_id_is_valid("nl69 zzz 1234 5678 0000"));
    for wrong in ["", "DE", "DE97ZZZ09999999999", "DE98ZZZ09999999998", "ZZ98ZZZ09999999999", "DE98ZZZ0999é999999"] {
        assert!(!creditor_id_is_valid(wrong), "{wrong}");
    }
}

prop_compose! {
    fn any_debit()(
        cents in 1_i64..=99_999_999_999,
        sequence in prop::sample::select(vec![Sequence::First, Sequence::Recurring, Sequence::OneOff, Sequence::Final]),
        texts in prop::array::uniform4(any::<String>()),
        bic in any::<bool>(),
    ) -> Debit {
        // A letter in front: only an empty text is rejected.
        let [reference, mandate, name, text] = texts;
        Debit {
            end_to_end_id: format!("R{reference}"),
            mandate_id: format!("M{mandate}"),
            debtor_name: format!("N{name}"),
            debtor_bic: bic.then(|| "RABONL2UXXX".into()),
            amount: Amount::from_scaled(cents),
            sequence,
            text,
            ..debit("1")
        }
    }
}

prop_compose! {
    fn any_batch()(
        debits in prop::collection::vec(any_debit(), 1..8),
        id in any::<String>(),
        name in any::<String>(),
        b2b in any::<bool>(),
    ) -> Batch {
        let made = batch(debits);
        let creditor = Creditor { name: format!("C{name}"), bic: None, ..made.creditor };
        let scheme = if b2b { Scheme::B2b } else { Scheme::Core };
        Batch { message_id: format!("B{id}"), scheme, creditor, ..made }
    }
}

proptest! {
    #[test]
    fn sums_are_correct_and_texts_are_escaped(batch in any_batch()) {
        let xml = write(&batch).unwrap();
        let cents = |text: &String| text.parse::<Amount>().unwrap().scaled();
        let total: i64 = batch.debits.iter().map(|debit| debit.amount.scaled()).sum();
        let sums: Vec<i64> = all(&xml, "CtrlSum").iter().map(cents).collect();
        prop_assert_eq!(sums[0], total);
        prop_assert_eq!(sums[1..].iter().sum::<i64>(), total);
        prop_assert_eq!(all(&xml, "InstdAmt").iter().map(cents).sum::<i64>(), total);

        let counts: Vec<usize> = all(&xml, "NbOfTxs").iter().map(|count| count.parse().unwrap()).collect();
        prop_assert_eq!(counts[0], batch.debits.len());
        prop_assert_eq!(counts[1..].iter().sum::<usize>(), batch.debits.len());

        for (name, text) in elements(&xml) {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "/-?:().,'+ ".contains(c);
            prop_assert!(text.trim().chars().all(allowed), "{}: {}", name, text);
        }
    }
}

#[test]
fn files_are_valid_against_the_public_schema() {
    let Ok(version) = Command::new("xmllint").arg("--version").output() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "In CI xmllint must be there: Debian's libxml2-utils.");
        println!("Skipped: xmllint is missing. Debian: sudo apt-get install libxml2-utils");
        return;
    };
    assert!(version.status.success());

    let folder = tempfile::tempdir().unwrap();
    // The schema of ISO 20022, which may be reproduced freely.
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pain.008.001.08.xsd");
    let mut lint = Command::new("xmllint");
    lint.args(["--noout", "--nonet", "--schema", schema]);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut batches = vec![
        batch(vec![debit("12.34")]),
        batch(vec![Debit { text: String::new(), debtor_bic: Some("RABONL2U".into()), ..debit("0.01") }]),
        batch(vec![Debit {
            mandate_id: "9".repeat(99),
            debtor_name: "é".repeat(99),
            text: "ß".repeat(999),
            ..debit("1")
        }]),
    ];
    batches.extend((0..60).map(|_| any_batch().new_tree(&mut runner).unwrap().current()));
    for (index, batch) in batches.iter().enumerate() {
        let path = folder.path().join(format!("{index}.xml"));
        std::fs::write(&path, write(batch).unwrap()).unwrap();
        lint.arg(path);
    }
    let output = lint.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // Checks that the schema is really applied.
    let path = folder.path().join("wrong.xml");
    let wrong = write(&batches[0]).unwrap().replace("<SeqTp>RCUR</SeqTp>", "<SeqTp>OFTEN</SeqTp>");
    std::fs::write(&path, wrong).unwrap();
    let output = Command::new("xmllint").args(["--noout", "--nonet", "--schema", schema]).arg(path).output().unwrap();
    assert!(!output.status.success());
}
