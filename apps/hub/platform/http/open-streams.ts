// Bounds how many event streams are open at once, for each token and each company: every open stream takes memory, and
// its caller is checked again and again.
import type { HubConfig } from '../../config.ts'
import { tooManyRequests } from './api-error.ts'

/** The Retry-After of a refused stream: an open one ends when its reader leaves, which nobody can predict. */
const RETRY_SECONDS = 60

export class OpenStreams {
  private readonly counts = new Map<string, number>()

  constructor(private readonly config: HubConfig) {}

  /**
   * Counts a stream of a credential in a company. Throws 429 at the bound. Returns the function that releases the
   * stream; a second call of it does nothing.
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
