// Under whom the embedded PostgreSQL runs. It refuses to run as root, so root runs it as another user, who keeps no
// capability at all.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { FileOwner } from '../files/replace-file.ts'

/**
 * Who runs the server on data in `directory`; null: whoever runs this process. As root that is the owner of the data,
 * and for new ones the system's postgres user, else nobody.
 */
export function serverUser(directory: string): FileOwner | null {
  if (process.getuid?.() !== 0) return null
  if (existsSync(join(directory, 'PG_VERSION'))) {
    const { uid, gid } = statSync(directory)
    if (uid !== 0) return { uid, gid }
  }
  const users = new Map(
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map(line => line.split(':'))
      .map(([name = '', , uid = '', gid = '']) => [name, { uid: Number(uid), gid: Number(gid) }] as const),
  )
  const found = users.get('postgres') ?? users.get('nobody')
  if (!found)
    throw new Error(
      'cannot start PostgreSQL as root: the system has neither a user postgres nor nobody; start as an ordinary user',
    )
  return found
}
