// How often somebody may try to log in, or to use the link of an invitation or of an e-mail address (decision G-02).
// The counts begin anew each minute; nobody is locked out for longer.
import { rateKeyOf } from '../../../core/network/rate-key.ts'
import type { FixedWindows } from '../../http/fixed-windows.ts'

/** For one address, whatever the e-mails: every attempt costs the hub a slow hash. */
const LOGINS_PER_MINUTE = 100
/** Wrong passwords for one e-mail from one address. */
const FAILURES_PER_MINUTE = 5
const LINKS_PER_MINUTE = 20

export const takeLoginAttempt = (windows: FixedWindows, ip: string) =>
  windows.take(`login ${rateKeyOf(ip)}`, LOGINS_PER_MINUTE)

const failures = (email: string, ip: string) => `login failures ${email.toLowerCase()} ${rateKeyOf(ip)}`

/** Whether another password may be tried. */
export const mayFailAgain = (windows: FixedWindows, email: string, ip: string) =>
  windows.peek(failures(email, ip), FAILURES_PER_MINUTE)

export const countLoginFailure = (windows: FixedWindows, email: string, ip: string) =>
  windows.take(failures(email, ip), FAILURES_PER_MINUTE)

/** `of`: what the link leads to, each counted by itself. */
export const mayUseLink = (windows: FixedWindows, of: 'invitation' | 'address', ip: string): boolean =>
  windows.take(`${of} ${rateKeyOf(ip)}`, LINKS_PER_MINUTE).allowed
