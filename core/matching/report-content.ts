// What two reports are compared by: their content without the moment at which it was read (MAT-023).
import { sha256Hex } from '../series/hash.ts'
import type { Report } from './report-schema.ts'

/**
 * SHA-256, in hex, of the report's JSON without collected_at_ms, scanner_version and kernel.booted_at_ms. Members keep
 * the order that they have in the report, so that both ends compute the same from the bytes that are sent.
 */
export function reportContentHash(report: Report): string {
  const { collected_at_ms: _, scanner_version: __, ...content } = report
  const { booted_at_ms: ___, ...kernel } = content.kernel
  return sha256Hex(JSON.stringify({ ...content, kernel }))
}
