// Bounds how many event streams are open at once: each takes memory and is checked again and again, so that a token and
// a company have a bound.
import type { HubConfig } from '../../config.ts'
import { tooManyRequests } from './api-error.ts'

/** When a place may be free again: streams end when their reader leaves. */
const RETRY_SECONDS = 60

export class OpenStreams {
  private readonly counts = new Map<string, number>()

  constructor(private readonly config: HubConfig) {}

  /**
   * Counts a stream of a credential in a company. Throws 429 for one too many. Returns what counts it no longer, once.
   */
  open(credentialId: string, companyId: string): () => void {
    const bounds = [
      [`credential ${credentialId}`, this.config['streams.per_token']],
      [`company ${companyId}`, this.config['streams.per_company']],
    ] as const
    if (bounds.some(([key, max]) => (this.counts.get(key) ?? 0) >= max)) throw tooManyRequests(RETRY_SECONDS)
    for (const [key] of bounds) this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      for (const [key] of bounds) {
        const left = (this.counts.get(key) ?? 0) - 1
        if (left > 0) this.counts.set(key, left)
        else this.counts.delete(key)
      }
    }
  }
}
