// Whether the hub refuses the token of the process that calls, or what it asks for: a licence, a code, the token of an
// agent.

/** A 401 or 403 about the caller's own bearer token, not about what it asked for (decision G-27). */
export const isOwnTokenRefused = (status: number, code: string): boolean =>
  (status === 401 || status === 403) &&
  !['invalid_token', 'token_revoked', 'token_expired', 'invalid_code'].includes(code)
