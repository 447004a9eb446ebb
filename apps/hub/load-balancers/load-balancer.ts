// A load balancer of a company (group 4 of the catalogue): the device, or the cluster, that pools and
// virtual servers are configured on.
import { sql } from 'drizzle-orm'
import { boolean as booleanColumn, timestamp } from 'drizzle-orm/pg-core'
import type { Tx } from '../platform/db/transaction.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { uuid } from '../platform/http/request-schema.ts'
import { refuseTarget } from '../platform/outbound-guard.ts'
import { apiUrlFault } from '../resources/api-url.ts'
import type { Editor } from '../resources/editor.ts'
import {
  booleanField,
  choiceField,
  integerField,
  internalField,
  referencesField,
  secretField,
  textField,
  timeField,
} from '../resources/field.ts'
import { columnNamed, defineKind, type RowOf, type Write } from '../resources/kind.ts'
import { refuseInUse } from '../resources/references.ts'

const vendors = ['haproxy', 'nginx', 'nginx_plus', 'f5', 'citrix', 'keepalived', 'cloud', 'other'] as const
const SECONDS_MIN = 60

const intervalFault = (seconds: number): Words | null =>
  seconds === 0 || seconds >= SECONDS_MIN ? null : words('minimum', { min: SECONDS_MIN })

const fields = {
  vendor: choiceField(vendors, { required: true, filter: true, sort: true }),
  server_ids: referencesField('server', 10, {}),
  datacenter: textField(128, { filter: true, options: 'datacenters' }),
  integration: choiceField(['none', 'haproxy_dataplane', 'nginx_plus'], { fallback: 'none', filter: true }),
  management_url: textField(2048, { search: 'text', check: apiUrlFault }),
  username: textField(255, {}),
  password: secretField(1024, { address: 'management_url', verifies: 'verify_tls' }),
  verify_tls: booleanField({ fallback: true }),
  writes: booleanField({ fallback: false }),
  sync_interval_seconds: integerField(0, 86_400, { fallback: 0, check: intervalFault }),
  synced_at: timeField({ readOnly: true, manifest: false }),
  sync_tried_at: internalField<Date | null>(
    name => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' }),
    null,
  ),
  sync_failed: internalField<boolean>(name => booleanColumn(name).notNull(), false),
} as const

/** With what the secret field keeps, which is in no type of fields. */
export type LoadBalancer = RowOf<typeof fields> & { readonly password_sealed?: string | null }

async function beforeWrite({ editor, before, next }: Write<LoadBalancer>): Promise<void> {
  if (next.management_url !== null && before?.management_url !== next.management_url)
    await refuseTarget(editor.hub.config, 'management_url', next.management_url)
  const isProbed = next.integration !== 'none' && next.sync_interval_seconds > 0
  const wasProbed = before !== null && before.integration !== 'none' && before.sync_interval_seconds > 0
  // Until it is read nothing speaks for a device that is read by the clock.
  if (!isProbed) next.probe_until = null
  else if (!wasProbed) next.probe_until = new Date(editor.hub.now())
}

/** Others than the device itself may name its pools and virtual servers. */
async function beforeDelete({
  tx,
  editor,
  row,
}: {
  readonly tx: Tx
  readonly editor: Editor
  readonly row: LoadBalancer
}) {
  const parts = await tx.db.execute<{ kind: string; id: string }>(sql`
    select 'virtual_server' as kind, id from virtual_servers where device_id = ${row.id} and deleted_at is null
    union all select 'lb_pool', id from lb_pools where device_id = ${row.id} and deleted_at is null`)
  for (const [kind, ofKind] of Map.groupBy(parts, part => part.kind)) {
    const ids = ofKind.map(part => part.id)
    await refuseInUse(editor, tx, kind, ids, ['virtual_server'])
  }
}

export const loadBalancerKind = defineKind({
  kind: 'load_balancer',
  title: { one: { en: 'load balancer', vi: 'bộ cân bằng tải' }, many: { en: 'load balancers', vi: 'bộ cân bằng tải' } },
  buttons: { sync: 'manage' },
  group: 'Load balancers',
  groupText: 'Devices, their pools and members, and what clients reach: who can still answer.',
  path: '/load-balancers',
  parameter: 'device',
  table: 'load_balancers',
  schemaName: 'LoadBalancer',
  fields,
  addressColumns: ['management_url'],
  limit: 500,
  permissions: { view: 'load-balancers.view', manage: 'load-balancers.manage' },
  filters: table => ({
    server_id: filter(uuid(), value => sql`${columnNamed(table, 'server_ids')} @> array[${value}]::uuid[]`),
  }),
  conditions: {
    device_unreachable: {
      severity: 'critical',
      text: { en: 'the device cannot be read: {error}', vi: 'không đọc được thiết bị: {error}' },
    },
    device_write_failed: {
      severity: 'warning',
      text: {
        en: 'the device does not take the state of {members}: {error}',
        vi: 'thiết bị không nhận trạng thái của {members}: {error}',
      },
    },
  },
  iac: { kind: 'load-balancer', order: 6, key: [] },
  csv: { key: ['name'] },
  hooks: {
    missing: ({ integration, management_url: url }) =>
      (integration ?? 'none') !== 'none' && url == null ? ['management_url', words('required')] : null,
    beforeWrite,
    beforeDelete,
    afterWrite: async ({ tx, before, after }) => {
      // What no longer takes states waits for none.
      if (after && (!after.writes || after.integration === 'none'))
        await tx.db.execute(sql`
          update lb_members set pending_state = null, write_failures = 0 where pending_state is not null
            and pool_id in (select id from lb_pools where device_id = ${after.id})`)
      // Whether its pools are meant to serve has changed: they are judged anew.
      if (before && after && before.status !== after.status)
        await tx.db.execute(sql`update lb_pools set judged_state = null where device_id = ${after.id}`)
    },
  },
})
