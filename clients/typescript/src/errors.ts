/** The errors of the API as classes. */

/** An invalid field of a request. */
export interface FieldError {
  /** The path of the field, such as `rows[2].quantity`. */
  readonly field: string;
  readonly code: string;
  readonly message: string;
}

interface What {
  status?: number;
  code?: string;
  details?: readonly FieldError[];
  requestId?: string;
  cause?: unknown;
}

/** A request that failed. `code` is for programs, `message` for people. */
export class KantoorError extends Error {
  readonly status: number;
  readonly code: string;
  /** Every invalid field. */
  readonly details: readonly FieldError[];
  /** The id under which the log of the server knows the request. */
  readonly requestId: string;

  constructor(message: string, what: What = {}) {
    super(message, { cause: what.cause });
    this.name = new.target.name;
    this.status = what.status ?? 0;
    this.code = what.code ?? "";
    this.details = what.details ?? [];
    this.requestId = what.requestId ?? "";
  }

  /** The first invalid field, or an empty string. */
  get field(): string {
    return this.details[0]?.field ?? "";
  }
}

/** 401: there is no valid key. */
export class AuthenticationError extends KantoorError {}
/** 403: the key lacks a scope, or a quota is used up. */
export class Forbidden extends KantoorError {}
/** 404: there is no such record in this account. */
export class NotFound extends KantoorError {}
/** 409: the state of the record does not allow it. */
export class Conflict extends KantoorError {}
/** 412: somebody else has changed the record in the meantime. */
export class PreconditionFailed extends KantoorError {}
/** 400 and 422: the request is invalid. */
export class ValidationFailed extends KantoorError {}
/** 429, after all retries. */
export class RateLimited extends KantoorError {}
/** 503, after all retries. */
export class Unavailable extends KantoorError {}
/** Any other 5xx. */
export class ServerError extends KantoorError {}
/** The server could not be reached, after all retries; `cause` has the reason. */
export class ConnectionLost extends KantoorError {}

const BY_STATUS: Record<number, typeof KantoorError> = {
  400: ValidationFailed,
  401: AuthenticationError,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  412: PreconditionFailed,
  422: ValidationFailed,
  429: RateLimited,
  503: Unavailable,
};

/** Returns the error of a response. */
export async function fromResponse(response: Response): Promise<KantoorError> {
  const { status } = response;
  const Kind = BY_STATUS[status] ?? (status >= 500 ? ServerError : KantoorError);
  const requestId = response.headers.get("x-request-id") ?? "";
  // It may be a page of a proxy.
  const body = (await response.json().catch(() => null)) as
    | { error?: { code: string; message: string; details: FieldError[] } }
    | null;
  const { code = "", message = response.statusText || "error", details = [] } = body?.error ?? {};
  return new Kind(message, { status, code, details, requestId });
}
