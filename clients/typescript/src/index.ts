/** Client of the Kantoor API: types generated from its OpenAPI document, with retries, paging and webhook signatures. */

import type { components } from "./generated.js";

export { Kantoor, type Options, type RequestOptions } from "./client.js";
export {
  AuthenticationError,
  Conflict,
  ConnectionLost,
  type FieldError,
  Forbidden,
  KantoorError,
  NotFound,
  PreconditionFailed,
  RateLimited,
  ServerError,
  Unavailable,
  ValidationFailed,
} from "./errors.js";
export { InvalidSignature, verifyWebhook, type WebhookEvent } from "./webhooks.js";
export type { components, operations, paths } from "./generated.js";

/** The types of the API by name: `Schemas["Invoice"]`. */
export type Schemas = components["schemas"];
