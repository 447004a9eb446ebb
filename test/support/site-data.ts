// The database of a site that has not started yet, made once for all sites of the check: cluster, role and tables are
// the same each time. Companies, users and tokens are made by each site. `bun test/support/site-data.ts FOLDER` makes
// the folder; startSiteProcess copies it (CHECK_SITE_DATA).
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { makeHubRole } from '../../apps/hub/platform/db/hub-role.ts'
import { startPostgres } from '../../apps/standalone/postgres.ts'

async function makeSiteData(folder: string): Promise<void> {
  const secrets = {
    postgres_password: randomBytes(32).toString('hex'),
    database_password: randomBytes(32).toString('hex'),
  }
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(folder, 'secrets.json'), JSON.stringify(secrets), { mode: 0o600 })
  const log = `${folder}.log`
  const server = await startPostgres(join(folder, 'postgres'), secrets.postgres_password, log)
  try {
    const database = openDatabase(await makeHubRole(server.url, secrets.database_password), 2)
    await bringUpToDate(database).finally(() => database.close())
  } finally {
    await server.stop()
    rmSync(log, { force: true })
  }
}

await makeSiteData(process.argv[2] ?? '')
