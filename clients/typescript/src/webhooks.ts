/** The signatures of webhooks, according to Standard Webhooks 1.0. */

/** A webhook that does not come from Kantoor, or is too old. */
export class InvalidSignature extends Error {
  override name = "InvalidSignature";
}

/** What happened. */
export interface WebhookEvent {
  /** Such as `invoice.paid`. */
  type: string;
  /** When it happened. */
  timestamp: string;
  /** Its number in the log; store it, since a webhook can arrive twice. */
  seq: number;
  /** The record right after the change. */
  data: Record<string, unknown>;
  actor: string;
  actor_type: string;
  actor_name?: string;
}

type HeaderValues = Headers | Record<string, string | string[] | undefined>;

/**
 * Returns the event of a webhook, or throws `InvalidSignature`. `body` is the body as it was received, before it was parsed.
 * `tolerance` is how many seconds the clocks may differ: an older webhook may be a copy that somebody sends again.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeaderValues,
  secret: string,
  { tolerance = 300 }: { tolerance?: number } = {},
): Promise<WebhookEvent> {
  const [id, sentAt, signatures] = ["id", "timestamp", "signature"].map((name) => header(headers, `webhook-${name}`));
  if (!id || !sentAt || !signatures) throw new InvalidSignature("a header is missing");
  // A timestamp that is no number is not within any tolerance.
  if (!(Math.abs(Date.now() / 1000 - Number(sentAt)) <= tolerance)) throw new InvalidSignature("the webhook is too old, or too new");
  const raw = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const start = new TextEncoder().encode(`${id}.${sentAt}.`);
  const signed = new Uint8Array(start.length + raw.length);
  signed.set(start);
  signed.set(raw, start.length);
  const bytes = decoded(secret.replace(/^whsec_/, ""));
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  // There are two while the secret is rotated.
  for (const signature of signatures.split(" ").filter((one) => one.startsWith("v1,"))) {
    if (await crypto.subtle.verify("HMAC", key, decoded(signature.slice(3)), signed)) {
      return JSON.parse(new TextDecoder().decode(raw)) as WebhookEvent;
    }
  }
  throw new InvalidSignature("no signature matches");
}

function header(headers: HeaderValues, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const found = Object.entries(headers).find(([own]) => own.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found[0] : found;
}

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    throw new InvalidSignature("the secret or a signature is malformed");
  }
}
