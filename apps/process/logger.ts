// The log of a process: JSON lines, in which nothing stands that is a secret.
import { openSync } from 'node:fs'
import { type Logger, type LoggerOptions, pino } from 'pino'
import { errorInfo } from '../../core/error-info.ts'

/** Fields that could hold a secret are masked. */
export function loggerOptions(level: string, service: string): LoggerOptions {
  return {
    level,
    base: { service },
    serializers: { err: (error: unknown) => errorInfo(error) },
    redact: {
      paths: ['token', 'license', 'authorization', 'password', '*.token', '*.license', '*.authorization', '*.password'],
      censor: '(hidden)',
    },
  }
}

/** What waits for room at most; later lines are dropped. */
const WAITING_BYTES_MAX = 1024 * 1024

/** Writes to standard output or to a file, in the background. */
export function createServiceLogger(level: string, service: string, file: string | null = null): Logger {
  const fd = file === null ? 1 : openSync(file, 'a', 0o600)
  const destination = pino.destination({ fd, sync: false, maxLength: WAITING_BYTES_MAX })
  // A log that cannot be written, as on a full disk, ends nothing: what waits is written with the next line.
  destination.on('error', () => {})
  return pino(loggerOptions(level, service), destination)
}
