// Vulnerability databases of tests, made by the product's own import from a tracker of Debian.
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFolder } from '../../apps/matcher/database-link.ts'
import { DatabaseVersions } from '../../apps/matcher/vulndb/database-versions.ts'
import { buildOf } from './vulndb/support.ts'

/** Source package → vulnerability → version in which bookworm has fixed it; null: no fix. */
type Fixes = Readonly<Record<string, Readonly<Record<string, string | null>>>>

const trackerOf = (fixes: Fixes): unknown =>
  Object.fromEntries(
    Object.entries(fixes).map(([name, vulns]) => [
      name,
      Object.fromEntries(
        Object.entries(vulns).map(([vuln, fixed]) => {
          const bookworm =
            fixed === null
              ? { status: 'open', urgency: 'high' }
              : { status: 'resolved', fixed_version: fixed, urgency: 'high' }
          return [vuln, { description: `${vuln} in ${name}`, releases: { bookworm } }]
        }),
      ),
    ]),
  )

/** Makes a database of these the version that a data directory names, as a command beside the matcher does. */
export const nameDatabase = (dir: string, fixes: Fixes): Promise<number> =>
  nameSources(dir, { debian: { 'tracker.json': trackerOf(fixes) } })

/** The same of whole sources, by name: their files, as each source publishes them. */
export async function nameSources(dir: string, sources: Parameters<typeof buildOf>[0]): Promise<number> {
  const folder = new DatabaseVersions(databaseFolder(dir))
  return folder.exclusively(async () => {
    const version = folder.nextVersion(Date.now())
    const previous = folder.current()?.file
    using built = await buildOf(sources, {
      version,
      acceptShrink: true,
      ...(previous === undefined ? {} : { previous }),
    })
    const written = join(folder.scratch(), 'new.sqlite')
    copyFileSync(built.file, written)
    folder.switchTo(written, version)
    return version
  })
}
