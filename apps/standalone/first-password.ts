// Where the password of the first person is shown: once on a terminal, or in a file of its own.
import { join } from 'node:path'
import { replaceFile } from '../files/replace-file.ts'
import type { SiteInfo } from './site.ts'

/**
 * How to log in. Only a terminal shows the first password. Output into a file or journal would keep it for everybody
 * who reads logs, so there it is written to a separate file.
 */
export function loginText({ user_email, user_password, data_dir }: SiteInfo): string {
  if (user_password === null) return user_email
  if (process.stdout.isTTY) return `${user_email}   password: ${user_password}   (shown this once)`
  const file = join(data_dir, 'first-password')
  replaceFile(file, `${user_password}\n`, { isDurable: true })
  return `${user_email}   password: in ${file}   (delete it once you have read it)`
}
