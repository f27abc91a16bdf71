// Exact decimals and totals, by the rules of crates/money: a row is rounded to cents, VAT is computed per rate and
// category, and halves round away from zero. Everything is a BigInt; nothing is a binary floating-point number.

const PRICE_DECIMALS = 6;
const CENT_DECIMALS = 2;

/** Reads a decimal with a point, such as 12.5 or "-0.05"; null if it is none or has too many decimals.
 * @param {string | number | null | undefined} value @param {number} decimals @returns {bigint | null} */
export function scaled(value, decimals) {
  const match = /^(-?)(\d+)(?:\.(\d*))?$/.exec(plainText(value));
  if (!match) return null;
  const fraction = (match[3] ?? "").replace(/0+$/, "");
  if (fraction.length > decimals) return null;
  const digits = BigInt((match[2] ?? "0") + fraction.padEnd(decimals, "0"));
  return match[1] ? -digits : digits;
}

/** Writes a scaled number as a decimal without needless zeros.
 * @param {bigint} value @param {number} decimals @param {number} [shown] The least number of decimals. */
export function unscaled(value, decimals, shown = 0) {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "").padEnd(shown, "0");
  return (value < 0n ? "-" : "") + whole + (fraction ? `.${fraction}` : "");
}

/** @param {string | number | null | undefined} value */
export const cents = (value) => scaled(value, CENT_DECIMALS) ?? 0n;
/** @param {bigint} value */
export const fromCents = (value) => unscaled(value, CENT_DECIMALS);

/** @typedef {{ quantity: string, unitPrice: string, rate: string, category: string }} Line */
/** @typedef {{ rate: string, category: string, net: bigint, tax: bigint }} Group */
/** @typedef {{ lines: bigint[], groups: Group[], net: bigint, tax: bigint, gross: bigint }} Totals All in cents. */

/** @typedef {{ net: bigint, scaledRate: bigint, category: string }} Part What a line adds to the totals. */

/** @param {Line[]} lines @returns {Totals} */
export const totals = (lines) => totalsOf(lines.map(partOfLine));

/** @param {Line} line @returns {Part} */
export const partOfLine = (line) => ({ net: lineTotal(line.quantity, line.unitPrice), scaledRate: scaled(line.rate, CENT_DECIMALS) ?? 0n, category: line.category });

/** @param {Part[]} parts @returns {Totals} */
export function totalsOf(parts) {
  /** @type {Map<string, Group & { scaledRate: bigint }>} */
  const groups = new Map();
  for (const { net, scaledRate, category } of parts) {
    const key = `${scaledRate} ${category}`;
    const group = groups.get(key) ?? { rate: unscaled(scaledRate, CENT_DECIMALS), category, scaledRate, net: 0n, tax: 0n };
    group.net += net;
    groups.set(key, group);
  }
  const sorted = [...groups.values()].sort((one, other) =>
    one.scaledRate === other.scaledRate ? (one.category < other.category ? -1 : 1) : one.scaledRate > other.scaledRate ? -1 : 1);
  let net = 0n;
  let tax = 0n;
  for (const group of sorted) {
    group.tax = rounded(group.net * group.scaledRate, 10_000n);
    net += group.net;
    tax += group.tax;
  }
  return { lines: parts.map((part) => part.net), groups: sorted, net, tax, gross: net + tax };
}

/** The total of a line in cents. What is not a number yet counts as zero.
 * @param {string} quantity @param {string} unitPrice */
export function lineTotal(quantity, unitPrice) {
  const product = (scaled(quantity, PRICE_DECIMALS) ?? 0n) * (scaled(unitPrice, PRICE_DECIMALS) ?? 0n);
  return rounded(product, 10n ** BigInt(2 * PRICE_DECIMALS - CENT_DECIMALS));
}

/** Divides and rounds half away from zero.
 * @param {bigint} value @param {bigint} step */
function rounded(value, step) {
  const half = value < 0n ? -step / 2n : step / 2n;
  return (value + half) / step;
}

/** JavaScript writes small numbers with an exponent.
 * @param {string | number | null | undefined} value */
function plainText(value) {
  if (typeof value !== "number") return value ?? "";
  const text = String(value);
  return text.includes("e") ? value.toFixed(PRICE_DECIMALS) : text;
}
