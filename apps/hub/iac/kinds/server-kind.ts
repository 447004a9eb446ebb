// Servers in manifests (decision G-126).
import { isIP } from 'node:net'
import { Type } from '@sinclair/typebox'
import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import type { Unchecked } from '../../../../core/json-object.ts'
import { auditRequest } from '../../audit/audit.ts'
import { changesBetween } from '../../audit/masked-changes.ts'
import { servers } from '../../platform/db/schema.ts'
import { lockCompany } from '../../platform/db/transaction.ts'
import { invalidField } from '../../platform/http/api-error.ts'
import { words } from '../../platform/http/api-texts.ts'
import { integer, listOf, oneOf, optional, text } from '../../platform/http/request-schema.ts'
import { inManifestNames } from '../../resources/manifest-fields.ts'
import { TAGS_MAX } from '../../servers/server-fields.ts'
import { findServer, presentServer } from '../../servers/server-list.ts'
import { settableStatuses } from '../../servers/server-response.ts'
import { changeServer, insertServer, type ServerInput, trashServer } from '../../servers/servers.ts'
import type { Existing, ExportFilter, ManifestKind, NameFinder, Reading } from './manifest-kind.ts'
import { isNamed, namedRows } from './named-rows.ts'
import { namesById } from './names-by-id.ts'
import { sortedTags } from './spec-fields.ts'

const COUNT_MAX = 2_147_483_647

const spec = Type.Object({
  name: optional(text(255)),
  hostname: optional(text(253)),
  ip_address: optional(text(64)),
  environment: optional(text(128)),
  role: optional(text(128)),
  datacenter: optional(text(128)),
  subnet: optional(text(64)),
  tags: optional(listOf(text(128), TAGS_MAX)),
  operating_system: optional(text(255)),
  cpu_cores: optional(integer(1, COUNT_MAX)),
  memory_mb: optional(integer(1, COUNT_MAX)),
  disk_gb: optional(integer(1, COUNT_MAX)),
  status: Type.Optional(oneOf(settableStatuses)),
})

type Row = typeof servers.$inferSelect

const existing = (row: Row, subnetName: (id: string) => string): Existing => ({
  id: row.id,
  name: row.name,
  version: row.syncVersion,
  spec: {
    name: row.name,
    hostname: row.hostname,
    ip_address: row.ipAddress,
    environment: row.environment,
    role: row.role,
    datacenter: row.datacenter,
    subnet: row.subnetId === null ? null : subnetName(row.subnetId),
    tags: row.tags,
    operating_system: row.operatingSystem,
    cpu_cores: row.cpuCores,
    memory_mb: row.memoryMb,
    disk_gb: row.diskGb,
    // A draft waits for its approval, which no manifest gives.
    ...(row.status === 'draft' ? {} : { status: row.status }),
  },
})

/** A subnet is named where it is one of the company's; any other text stays as it is. */
async function read(reading: Reading, rows: readonly Row[]): Promise<Existing[]> {
  const names = await namesById(reading, 'subnet', [...new Set(rows.flatMap(row => row.subnetId ?? []))])
  return rows.map(row => existing(row, id => names.get(id) ?? id))
}

const ofCompany = (companyId: string): SQL | undefined =>
  and(eq(servers.companyId, companyId), isNull(servers.deletedAt))

const filtered = ({ companyId }: Reading, { tag, origin, ...named }: ExportFilter): SQL | undefined =>
  and(
    ofCompany(companyId),
    isNamed(servers.id, servers.name, named),
    tag === undefined ? undefined : sql`${tag} = any(${servers.tags})`,
    origin === undefined ? undefined : sql`${servers.origin} = ${origin}`,
  )

/** A spec in the names of the API. Its schema was checked. */
function inputOf(given: Unchecked, find: NameFinder): ServerInput {
  const { subnet, ...rest } = given
  const subnetId = typeof subnet === 'string' ? (find('subnet', subnet)?.id ?? subnet) : subnet
  return { ...rest, ...(subnet === undefined ? {} : { subnet_id: subnetId }) } as ServerInput
}

const DEFAULTS: Unchecked = {
  hostname: null,
  ip_address: null,
  environment: null,
  role: null,
  datacenter: null,
  subnet: null,
  tags: [],
  operating_system: null,
  cpu_cores: null,
  memory_mb: null,
  disk_gb: null,
  status: 'active',
}

export const serverKind: ManifestKind = {
  kind: 'server',
  title: 'Servers',
  order: 3,
  resourceKind: 'server',
  permissions: { view: 'servers.view', manage: 'servers.manage', delete: 'servers.delete' },
  dependsOn: ['subnet'],
  spec,
  inManifestNames: given => inManifestNames([['subnet', 'subnet_id']], given),
  defaults: DEFAULTS,
  isNameUnique: true,
  referencesOf: given =>
    typeof given.subnet === 'string' ? [{ kind: 'subnet', name: given.subnet, at: ['subnet'], isOptional: true }] : [],
  normal: (given, find) => {
    const { subnet } = given
    const named = typeof subnet === 'string' ? { subnet: find('subnet', subnet)?.name ?? subnet } : {}
    return sortedTags({ ...given, ...named })
  },
  faults: async (_reading, given) =>
    typeof given.ip_address === 'string' && isIP(given.ip_address) === 0
      ? new Map([['ip_address', words('ip_address')]])
      : new Map(),
  ...namedRows({
    table: servers,
    name: servers.name,
    ofCompany,
    filtered,
    read,
  }),
  create: async ({ hub, tx, context, companyId }, given, find) => {
    await lockCompany(tx, companyId)
    const name = String(given.name)
    const id = await insertServer(hub, tx, companyId, { ...inputOf(given, find), name }, 'iac')
    await auditRequest(tx, context, 'server.create', { type: 'server', id, name })
    return id
  },
  update: async ({ hub, tx, context, companyId }, { id }, changed, given, find) => {
    await lockCompany(tx, companyId)
    const before = await findServer(tx.db, companyId, id)
    if (before.server.status === 'draft') throw invalidField('status', 'state_refused', { state: 'draft' })
    const input = Object.fromEntries(Object.entries(given).filter(([name]) => changed.has(name)))
    await changeServer(hub, tx, before.server, inputOf(input, find))
    await tx.db.update(servers).set({ origin: 'iac' }).where(eq(servers.id, id))
    const after = await findServer(tx.db, companyId, id)
    const changes = changesBetween(presentServer(before), presentServer(after))
    await auditRequest(tx, context, 'server.update', { type: 'server', id, name: after.server.name }, changes)
  },
  remove: async ({ hub, tx, context, companyId }, { id, name }) => {
    await lockCompany(tx, companyId)
    const { server } = await findServer(tx.db, companyId, id)
    await trashServer(hub, tx, server)
    await auditRequest(tx, context, 'server.delete', { type: 'server', id, name })
  },
}
