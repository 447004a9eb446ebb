// Times in the pages are those of the hub: a clock of this computer that is wrong makes no "5 minutes ago" wrong.
import { data } from './document-data.ts'

/** How far the hub's clock is ahead of this one when the page was loaded, in milliseconds. */
const clockLeadMs = data.nowMs - Date.now()

/** Now, by the hub's clock. */
export const nowMs = (): number => Date.now() + clockLeadMs
