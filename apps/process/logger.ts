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

/** Writes to standard output or to a file, in the background. */
export const createServiceLogger = (level: string, service: string, file: string | null = null): Logger =>
  pino(
    loggerOptions(level, service),
    pino.destination({ fd: file === null ? 1 : openSync(file, 'a', 0o600), sync: false }),
  )
