// What a log may say of an error: its kind, its message, its code and its causes. No stack, and no statement or
// parameters of a database: those of drizzle stand in its message, so its cause speaks instead.

type ErrorInfo = {
  readonly type: string
  readonly message: string
  readonly code?: string
  readonly cause?: ErrorInfo
}

const CAUSES_MAX = 3
/** Errors whose own message holds a statement with its parameters. */
const TELLS_STATEMENT = /^Failed query:/

/** For the `err` member of a log line. */
export function errorInfo(error: unknown, depth = 0): ErrorInfo {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) }
  const code =
    'code' in error && (typeof error.code === 'string' || typeof error.code === 'number')
      ? String(error.code)
      : undefined
  return {
    type: error.name,
    message: TELLS_STATEMENT.test(error.message) ? 'a statement of the database failed' : error.message,
    ...(code === undefined ? {} : { code }),
    ...(error.cause !== undefined && depth < CAUSES_MAX ? { cause: errorInfo(error.cause, depth + 1) } : {}),
  }
}

/** What the operator is told of an error on one line: its message, of a statement that failed the code instead. */
export function errorLine(error: unknown): string {
  const { message, code, cause } = errorInfo(error)
  if (!(error instanceof Error) || error.message === message) return message
  return `${message} (${cause?.code ?? code ?? 'no code'})`
}

/** The lines of source code that Bun prints before an error, with the mark below them. */
const CODE_FRAME = /^ *\d+ \|/
const CODE_MARK = /^ *\^$/
/** What it prints behind: members, where it was thrown, and the causes. */
const BEHIND_MESSAGE = /^( +[\w$]+: |\s+at |\s*$)/

/** The message alone of an error that ended a thread, whose event has it as Bun prints it: with a frame of its code. */
export function threadFault(printed: string): string {
  const lines = printed.split('\n')
  const first = lines.findIndex(line => !CODE_FRAME.test(line) && !CODE_MARK.test(line) && line.trim() !== '')
  if (first < 0) return printed.trim()
  const behind = lines.findIndex((line, index) => index > first && BEHIND_MESSAGE.test(line))
  return lines
    .slice(first, behind < 0 ? undefined : behind)
    .join('\n')
    .replace(/^error: /, '')
    .trim()
}
