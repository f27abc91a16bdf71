//! Search texts in which the first and last name of a person are next to each other, so that both together find the person.

use store::Migration;

/// Replaces the line break between the first and last name in the stored search texts by a space. They are folded, which SQL
/// cannot do, so the line break is found by counting: one follows each of the fields before it that is not empty.
pub(super) const MIGRATION: Migration = Migration {
    number: 130,
    name: "names of people in search texts",
    sql: "
WITH RECURSIVE named (account_id, kind, id, ahead) AS (
    SELECT account_id, 'client', id, CASE company_name WHEN '' THEN 0 ELSE 1 END
    FROM clients WHERE firstname <> '' AND lastname <> ''
    UNION ALL
    SELECT account_id, 'supplier', id, CASE company_name WHEN '' THEN 0 ELSE 1 END
    FROM suppliers WHERE firstname <> '' AND lastname <> ''
    UNION ALL
    SELECT account_id, 'invoice', id, CASE number WHEN '' THEN 0 ELSE 1 END + CASE title WHEN '' THEN 0 ELSE 1 END
        + CASE external_id WHEN '' THEN 0 ELSE 1 END + CASE client_company_name WHEN '' THEN 0 ELSE 1 END
    FROM invoices WHERE client_firstname <> '' AND client_lastname <> ''
    UNION ALL
    SELECT account_id, 'quote', id, CASE number WHEN '' THEN 0 ELSE 1 END + CASE title WHEN '' THEN 0 ELSE 1 END
        + CASE external_id WHEN '' THEN 0 ELSE 1 END + CASE client_company_name WHEN '' THEN 0 ELSE 1 END
    FROM quotes WHERE client_firstname <> '' AND client_lastname <> ''
    UNION ALL
    SELECT account_id, 'workorder', id, CASE number WHEN '' THEN 0 ELSE 1 END + CASE title WHEN '' THEN 0 ELSE 1 END
        + CASE external_id WHEN '' THEN 0 ELSE 1 END + CASE client_company_name WHEN '' THEN 0 ELSE 1 END
    FROM workorders WHERE client_firstname <> '' AND client_lastname <> ''
),
breaks (number, folded, place, ahead) AS (
    SELECT search_texts.number, search_texts.folded, 0, named.ahead
    FROM named JOIN search_texts ON search_texts.account_id = named.account_id
        AND search_texts.kind = named.kind AND search_texts.record_id = named.id
    UNION ALL
    SELECT number, folded,
-- sqlite
        place + instr(substr(folded, place + 1), char(10)),
-- postgres
        place + strpos(substr(folded, place + 1), chr(10)),
-- both
        ahead - 1
    FROM breaks WHERE ahead >= 0
)
UPDATE search_texts SET folded = substr(breaks.folded, 1, breaks.place - 1) || ' ' || substr(breaks.folded, breaks.place + 1)
FROM breaks WHERE breaks.number = search_texts.number AND breaks.ahead = -1 AND breaks.place > 0;
",
};
