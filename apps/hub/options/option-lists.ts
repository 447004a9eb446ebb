// Option lists (R-063): a fixed registry of lists, each with items of a company. Not strict, they are suggestions for
// forms; strict, another value is refused on the fields of the list, and what stands already stays.
import { sql } from 'drizzle-orm'
import { uuidFromText } from '../../../core/series/hash.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { BothLanguages } from '../resources/kind-info.ts'

/** A column whose values belong to a list. */
type Use = {
  readonly kind: string
  readonly field: string
  readonly table: string
  readonly column: string
  readonly isList?: true
}

type OptionList = { readonly title: BothLanguages; readonly uses: readonly Use[] }

const server = (field: string, column = field): Use => ({ kind: 'server', field, table: 'servers', column })
const list = (en: string, vi: string, ...uses: readonly Use[]): OptionList => ({ title: { en, vi }, uses })
const subnet = (column: string): Use => ({ kind: 'subnet', field: column, table: 'subnets', column })
const address = (column: string): Use => ({ kind: 'ip_address', field: column, table: 'ip_addresses', column })

export const optionLists: Readonly<Record<string, OptionList>> = {
  environments: list('Environments', 'Môi trường', server('environment'), subnet('environment')),
  roles: list('Roles', 'Vai trò', server('role')),
  datacenters: list('Data centers', 'Trung tâm dữ liệu', server('datacenter'), subnet('datacenter'), {
    kind: 'load_balancer',
    field: 'datacenter',
    table: 'load_balancers',
    column: 'datacenter',
  }),
  operating_systems: list('Operating systems', 'Hệ điều hành', server('operating_system')),
  connection_types: list('Connection types', 'Loại kết nối', {
    kind: 'connection',
    field: 'type',
    table: 'connections',
    column: 'type',
  }),
  vrfs: list('Address spaces', 'Không gian địa chỉ', subnet('vrf'), address('vrf')),
  ip_purposes: list('Purposes of addresses', 'Mục đích địa chỉ', address('purpose')),
  certificate_issuers: list('Certificate issuers', 'Nhà cấp chứng chỉ'),
  silence_reasons: list('Reasons of silences', 'Lý do im lặng', {
    kind: 'silence',
    field: 'reason',
    table: 'monitoring_silences',
    column: 'reason',
  }),
  resource_tags: list(
    'Tags',
    'Thẻ',
    ...Object.entries({
      server: 'servers',
      connection: 'connections',
      load_balancer: 'load_balancers',
      lb_pool: 'lb_pools',
      lb_member: 'lb_members',
      virtual_server: 'virtual_servers',
      proxy: 'proxies',
      proxy_site: 'proxy_sites',
      certificate: 'certificates',
      dns_server: 'dns_servers',
      dns_zone: 'dns_zones',
      dns_record: 'dns_records',
      subnet: 'subnets',
      ip_address: 'ip_addresses',
    }).map(([kind, table]): Use => ({ kind, field: 'tags', table, column: 'tags', isList: true })),
  ),
}

/** Lists are rows of no table: an id that belongs to a list of a company all the same. */
export const optionListId = (companyId: string, name: string): string =>
  uuidFromText(`option list ${name} of ${companyId}`)

export const isOptionList = (name: string): boolean => Object.hasOwn(optionLists, name)

/** How often the values of a list are used, by value. */
export async function usesOf(db: Executor, companyId: string, name: string): Promise<Map<string, number>> {
  const uses = optionLists[name]?.uses ?? []
  if (uses.length === 0) return new Map()
  const selects = uses.map(({ table, column, isList }) => {
    const from = sql`from ${sql.identifier(table)} where company_id = ${companyId} and deleted_at is null`
    return isList
      ? sql`select unnest(${sql.identifier(column)}) as value ${from}`
      : sql`select ${sql.identifier(column)} as value ${from} and ${sql.identifier(column)} is not null`
  })
  const rows = await db.execute<{ value: string; count: number }>(sql`
    select value, count(*)::int as count from (${sql.join(selects, sql` union all `)}) u group by value`)
  return new Map(rows.map(row => [row.value, row.count]))
}

export const usedBy = (name: string): readonly string[] =>
  (optionLists[name]?.uses ?? []).map(use => `${use.kind}.${use.field}`)
