// How many reports are taken at one time; who comes with one more is asked to come again.
import { type ApiError, unavailable } from '../../http/api-error.ts'

/** Calls that are read and answered at one time; a body as it is sent may take a MiB. */
const CALLS_MAX = 1024
/** Inflated bytes of the reports that are matched at one time; as objects they take some four times as much. */
const BYTES_MAX = 64 * 1024 * 1024
const BUSY_RETRY_SECONDS = 2

export const busy = (): ApiError => unavailable('too many reports at one time', BUSY_RETRY_SECONDS)

export class ReportsAtOnce {
  private calls = 0
  private bytes = 0

  /** False where there are as many calls as may be. */
  beginCall(): boolean {
    if (this.calls >= CALLS_MAX) return false
    this.calls++
    return true
  }

  endCall(): void {
    this.calls--
  }

  /** Where nothing else is matched there is room for any report. */
  hasRoomFor(bytes: number): boolean {
    return this.bytes === 0 || this.bytes + bytes <= BYTES_MAX
  }

  take(bytes: number): void {
    this.bytes += bytes
  }

  giveBack(bytes: number): void {
    this.bytes -= bytes
  }
}
