// How documents will look with a corporate identity, while it is being edited.
import { useLoad } from "../api.js";
import { iban, money } from "../format.js";
import { div, h, img, span, strong } from "../html.js";
import { Card } from "../parts.js";
import { t } from "../words.js";

/** @param {{ values: import("../api.js").Item }} properties */
export function IdentityPreview({ values }) {
  const file = useLoad(values.logo_file_id ? `/v1/files/${values.logo_file_id}` : null).answer?.data;
  const primary = /^#[0-9a-f]{6}$/i.test(values.primary_color) ? values.primary_color : "#1f4e79";
  const second = /^#[0-9a-f]{6}$/i.test(values.secondary_color) ? values.secondary_color : "#5b7083";
  const lines = [values.address, [values.zipcode, values.city].filter(Boolean).join(" "), values.phone, values.email].filter(Boolean);
  return h(Card, { title: t("identity.preview"), class: "aside" }, div({ class: "identity", "aria-hidden": "true" },
    div({ class: "identity-head" }, file ? img({ src: `/console/v1/files/${values.logo_file_id}/content`, alt: "" }) : strong({ style: { color: primary } }, values.name || t("field.company_name")), div({ class: "identity-from" }, strong(null, values.name), lines.map((line) => span({ key: line }, line)))),
    div({ class: "identity-title", style: { color: primary } }, t("identity.invoice")),
    div({ class: "identity-to" }, span(null, t("identity.client")), span(null, "Dorpsstraat 1"), span(null, "1234 AB Voorbeeldstad")),
    div({ class: "identity-rule", style: { backgroundColor: second } }),
    div({ class: "identity-row" }, span(null, t("identity.row")), span(null, money("1250"))), div({ class: "identity-row" }, span(null, t("field.vat_rate"), " 21 %"), span(null, money("262.50"))),
    div({ class: "identity-row total", style: { color: primary } }, span(null, t("field.total_incl_vat")), span(null, money("1512.50"))),
    div({ class: "identity-foot" }, values.footer ? span(null, values.footer) : null, span(null, [values.iban ? iban(values.iban) : "", values.bic, values.company_registration_number ? `${t("field.company_registration_number")} ${values.company_registration_number}` : "", values.vat_number].filter(Boolean).join(" · ")))));
}
