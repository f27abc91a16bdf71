// A new passkey of the browser, in the form that the server takes: bytes in base64url without padding.

/** @param {any} options The options of the server, with bytes in base64url. */
export async function createPasskey(options) {
  const own = options.publicKey ?? options;
  const made = await navigator.credentials.create({ publicKey: {
    ...own, challenge: bytes(own.challenge), user: { ...own.user, id: bytes(own.user.id) },
    excludeCredentials: (own.excludeCredentials ?? []).map((/** @type {any} */ one) => ({ ...one, id: bytes(one.id) })),
  } });
  const response = /** @type {AuthenticatorAttestationResponse} */ (/** @type {PublicKeyCredential} */ (made).response);
  return { client_data: text(response.clientDataJSON), authenticator_data: text(response.getAuthenticatorData()) };
}

/** @param {string} value */
const bytes = (value) => Uint8Array.from(atob(value.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));

/** @param {ArrayBuffer} buffer */
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
