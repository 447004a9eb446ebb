// The health check of a pool as HAProxy writes it, whether the pool stands behind a load balancer or a reverse proxy.
import type { HealthCheck } from './config-text.ts'

/** The lines of a backend. */
export function checkLines({ type, path, expect_status, timeout_seconds }: HealthCheck): readonly string[] {
  const asks = type === 'http' || type === 'https'
  return [
    ...(type === 'none' ? [] : [`  timeout check ${timeout_seconds}s`]),
    ...(asks ? [`  option httpchk GET ${path}`, `  http-check expect status ${expect_status}`] : []),
  ]
}

/** The words of a server's line. */
export const checkWords = ({ type, interval_seconds }: HealthCheck): readonly string[] => [
  ...(type === 'none' ? [] : [`check inter ${interval_seconds}s`]),
  ...(type === 'https' ? ['check-ssl'] : []),
]
