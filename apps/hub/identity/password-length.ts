// How long a password must be.

/** Of a password that a person chooses. */
export const PASSWORD_CHARS_MIN = 12
