// Which keys seal and open stored secrets: of the configuration, of the data directory, and the one in the database.
// The ids of those in use stand in the database too, so that a hub which lacks one says so at its start, and not by
// what it fails to do later.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { makeDataDirectory } from '../../files/data-directory.ts'
import { syncPath, writeNewFile } from '../../files/replace-file.ts'
import { auditByHub } from '../audit/audit.ts'
import type { HubConfig } from '../config.ts'
import type { Db } from '../platform/db/connect.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { createSealer, type Sealer } from './sealer.ts'

const FILE = 'hub-secret.key'
const IN_USE = 'hub.sealing_keys'

/** Every column that holds sealed texts, as the tables have them. */
export const SEALED_COLUMNS = sql`
  select c.table_name as "table", c.column_name as "column" from information_schema.columns c
  where c.table_schema = current_schema() and c.column_name like '%\\_sealed' and c.data_type = 'text'
  order by c.table_name, c.column_name`

/** The key in the database, which every hub and every command has. */
async function keyOfDatabase(db: Db): Promise<string> {
  const fresh = randomBytes(32).toString('hex')
  const [row] = await db.execute<{ value: string }>(sql`
    insert into system_settings (key, value) values ('hub.secret_key', to_jsonb(${fresh}::text))
    on conflict (key) do update set key = excluded.key returning value`)
  return row?.value ?? fresh
}

/** The ids of the keys in use; null in a database of a version that did not keep them. */
async function keptIds(db: Db): Promise<readonly string[] | null> {
  const [row] = await db.execute<{ value: string[] }>(sql`select value from system_settings where key = ${IN_USE}`)
  return row?.value ?? null
}

/** The ids of all keys that sealed what is stored. */
async function sealedIds(db: Db): Promise<readonly string[]> {
  const columns = await db.execute<{ table: string; column: string }>(SEALED_COLUMNS)
  const found = new Set<string>()
  for (const { table, column } of columns) {
    const rows = await db.execute<{ id: string }>(sql`
      select distinct split_part(${sql.identifier(column)}, '.', 2) as id from ${sql.identifier(table)}
      where ${sql.identifier(column)} is not null`)
    for (const { id } of rows) found.add(id)
  }
  const blocks = await db.execute<{ id: string }>(
    sql`select distinct encode(substr(content, 2, 4), 'hex') as id from stored_blocks`,
  )
  for (const { id } of blocks) found.add(id)
  return [...found]
}

/** What the operator is told of keys that are in use and not here; null where all are. */
function lackOf(ids: readonly string[], path: string | null): string | null {
  const [id] = ids
  if (id === undefined) return null
  const place = path ?? `${FILE} in a folder that data_dir names`
  return (
    `keys are in use that are not here (${ids.join(', ')}), and what they sealed this hub cannot open: copy ${FILE} of ` +
    `the hub that has them to ${place}, or set its secret.key. For one that is lost for good, \`hub forget-key ${id}\`, ` +
    'and give anew what it sealed.'
  )
}

/**
 * The ids in use that this hub holds, and those that it lacks. In a database that keeps none yet it lacks what is
 * sealed when it can open nothing of it but what every hub can.
 */
async function idsInUse(db: Db, held: readonly string[]) {
  const kept = await keptIds(db)
  const ids = kept ?? (await sealedIds(db))
  const [own, foreign] = [ids.filter(id => held.includes(id)), ids.filter(id => !held.includes(id))]
  // The last is the key of the database.
  return { own, lacking: kept !== null || own.every(id => id === held.at(-1)) ? foreign : [] }
}

/** Adds the key that seals. `ids` are those in use where the database keeps none yet. */
async function useKey(db: Db, { keyId }: Sealer, ids: readonly string[]): Promise<void> {
  const fresh = JSON.stringify([...new Set([...ids, keyId])])
  await db.execute(sql`
    insert into system_settings as s (key, value) values (${IN_USE}, ${fresh}::jsonb)
    on conflict (key) do update set value = case when s.value ? ${keyId} then s.value
      else s.value || to_jsonb(${keyId}::text) end`)
}

/** The file of the key, and the keys outside the database, the one that seals first. */
function ownKeys(config: HubConfig): {
  readonly path: string | null
  readonly inFile: string | null
  readonly keys: string[]
} {
  const path = config.data_dir ? join(config.data_dir, FILE) : null
  const inFile = path !== null && existsSync(path) ? readFileSync(path, 'utf8').trim() : null
  return { path, inFile, keys: [config['secret.key'] || null, inFile].filter(key => key !== null) }
}

/**
 * The sealer of a hub, and what it lacks. Commands that know neither of the keys outside the database seal with the one
 * in it, which every hub can open, and so does a hub whose folder has no key while another hub has one.
 */
export async function loadSealer(
  config: HubConfig,
  db: Db,
  isServing: boolean,
): Promise<{ readonly sealer: Sealer; readonly lack: string | null }> {
  const ofDatabase = await keyOfDatabase(db)
  const { path, inFile, keys } = ownKeys(config)
  if (!isServing && !config['secret.key'] && path === null) return { sealer: createSealer([ofDatabase]), lack: null }
  const { own, lacking } = await idsInUse(db, createSealer([...keys, ofDatabase]).keyIds)
  if (path !== null && config.data_dir && inFile === null && lacking.length === 0) {
    const fresh = randomBytes(32).toString('hex')
    makeDataDirectory(config.data_dir)
    // What is sealed with it in the database outlives a power cut, and so must the key.
    writeNewFile(path, fresh, { isDurable: true })
    syncPath(config.data_dir)
    keys.push(fresh)
  }
  const sealer = createSealer([...keys, ofDatabase])
  await useKey(db, sealer, [...own, ...lacking])
  return { sealer, lack: lackOf(lacking, path) }
}

/** After what this hub can open was sealed anew: of its keys, one alone is in use. */
export async function useOneKey(db: Db, sealer: Sealer): Promise<void> {
  const held = sealer.keyIds.join(' ')
  await db.execute(sql`
    update system_settings set value = (value - string_to_array(${held}, ' ')) || to_jsonb(${sealer.keyId}::text)
    where key = ${IN_USE}`)
}

/** Hubs wait for a lost key no longer. Throws where no such key is in use, and where it is not lost. */
export async function forgetKey(db: Db, config: HubConfig, id: string): Promise<void> {
  const ids = (await keptIds(db)) ?? (await sealedIds(db))
  if (!ids.includes(id)) throw new Error(`no key ${id} is in use`)
  if (createSealer([...ownKeys(config).keys, await keyOfDatabase(db)]).keyIds.includes(id))
    throw new Error(`the key ${id} is here and not lost`)
  const others = JSON.stringify(ids.filter(each => each !== id))
  await inTransaction(db, async tx => {
    await tx.db.execute(sql`
      insert into system_settings as s (key, value) values (${IN_USE}, ${others}::jsonb)
      on conflict (key) do update set value = s.value - ${id}::text`)
    await auditByHub(tx, null, 'sealing_key.forget', { type: 'sealing_key', id: null, name: id })
  })
}
