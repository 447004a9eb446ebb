// Text of others for a terminal: what would move its cursor, rename its window or turn the direction of what is read is
// shown as a mark instead.

const NOT_SHOWN = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** One line without control characters, as it is safe to show whoever wrote it. */
export const printable = (text: string): string => text.replace(NOT_SHOWN, '\ufffd')
