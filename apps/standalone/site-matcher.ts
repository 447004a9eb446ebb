// The security matcher of a site in one process, wired as its executable wires it, and what the agent of this host
// needs to be scanned by it (MAT-250, MAT-251).
import { resolve } from 'node:path'
import type { Logger } from 'pino'
import type { Hub } from '../hub/hub-context.ts'
import { activeHostOf } from '../hub/security/scan-hosts/scan-hosts.ts'
import type { MatcherConfig } from '../matcher/config.ts'
import type { DatabaseLink } from '../matcher/database-link.ts'
import { type OpenMatcher, openMatcher } from '../matcher/open-matcher.ts'
import { readKeyFile } from '../matcher/vulndb/bundle.ts'
import { reason } from './data-dir.ts'

/** The scan host of the local agent is there within this time, or the ready file does not name it. */
const ENROLLED_MS = 5_000
const POLL_MS = 20

const NO_DATABASE =
  'no vulnerability database: matcher db import FILE, or let this machine reach the sources of its distribution'

type SiteMatcherParts = {
  readonly config: MatcherConfig
  /** `auto`, `off`, or the path of a bundle (MAT-253). */
  readonly securityDb: string
  readonly log: Logger
  /** Shown on the terminal. */
  readonly say: (line: string) => void
}

/** Starts the matcher; it is left in `started` to be stopped. */
export async function startSiteMatcher(parts: SiteMatcherParts, started: AsyncDisposableStack): Promise<OpenMatcher> {
  const { config, log, say, securityDb } = parts
  const sayMissing = once(() => say(NO_DATABASE))
  const matcher = await openMatcher({
    config,
    log,
    onFaults: dbVersion => {
      if (dbVersion === 0) sayMissing()
    },
  })
  started.defer(() => matcher.stop())
  // The site says once what it is.
  matcher.metrics.registry.removeSingleMetric('svc_build_info')
  if (isFile(securityDb)) void importBundle(parts, matcher.database)
  else if (securityDb === 'off' && matcher.dbVersion() === 0) sayMissing()
  return matcher
}

function once(act: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) act()
    isDone = true
  }
}

const isFile = (securityDb: string): boolean => securityDb !== 'auto' && securityDb !== 'off'

/** In the background: the site is ready before. */
async function importBundle({ config, securityDb, log, say }: SiteMatcherParts, database: DatabaseLink): Promise<void> {
  try {
    const keyFile = config['db.public_key_file']
    const { version } = await database.updater.importFile(
      resolve(securityDb),
      keyFile === null ? null : readKeyFile(keyFile),
    )
    log.info({ db_version: version }, 'the vulnerability database is imported')
  } catch (error) {
    log.error({ err: error }, 'cannot import the vulnerability database')
    say(`the vulnerability database is not imported: ${reason(error)}`)
  }
}

/** The scan host of a server: the ready file names it. It is waited for a little where its agent enrolls only now. */
export async function scanHostOf(hub: Hub, serverId: string, isEnrolling: boolean): Promise<string | null> {
  const lateAtMs = performance.now() + (isEnrolling ? ENROLLED_MS : 0)
  for (;;) {
    const hostId = await activeHostOf(hub, serverId)
    if (hostId !== null || performance.now() > lateAtMs) return hostId
    await Bun.sleep(POLL_MS)
  }
}
