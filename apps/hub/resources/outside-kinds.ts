// What the hub had before the registry, as kinds: they take part in search, references and exports, and have routes and
// tables of their own.
import type { KindInfo, Reference } from './kind-info.ts'

const outside = (
  kind: string,
  titles: readonly [one: string, many: string, oneVi: string, manyVi: string],
  where: Pick<KindInfo, 'path' | 'table' | 'pathColumn' | 'withoutDocuments'> & { readonly nameColumn?: string },
  permissions: readonly [view: string, manage: string],
  references: readonly Reference[] = [],
  addressColumns: readonly string[] = [],
): KindInfo => ({
  kind,
  title: { one: { en: titles[0], vi: titles[2] }, many: { en: titles[1], vi: titles[3] } },
  nameColumn: 'name',
  ...where,
  permissions: { view: permissions[0], manage: permissions[1] },
  references,
  addressColumns,
  conditions: {},
  parent: null,
  isResource: false,
})

const MONITORING = ['monitoring.view', 'monitoring.manage'] as const
/** Of rules and silences, which their lists show to those alone who may change them (document 1 "Authentication"). */
const MANAGED = ['monitoring.manage', 'monitoring.manage'] as const
const IDENTITY = ['identity.view', 'identity.manage'] as const

export const outsideKinds: readonly KindInfo[] = [
  outside(
    'server',
    ['server', 'servers', 'máy chủ', 'máy chủ'],
    { path: '/servers', table: 'servers' },
    ['servers.view', 'servers.manage'],
    // Free text that may be the id of a subnet.
    [{ field: 'subnet_id', to: 'subnet', column: 'subnet_id', isText: true }],
    ['ip_address', 'hostname'],
  ),
  outside(
    'check',
    ['check', 'checks', 'kiểm tra', 'kiểm tra'],
    {
      path: '/monitoring/checks',
      table: 'monitoring_checks',
    },
    MONITORING,
  ),
  outside('rule', ['rule', 'rules', 'luật', 'luật'], { path: '/monitoring/rules', table: 'monitoring_rules' }, MANAGED),
  outside(
    'silence',
    ['silence', 'silences', 'khoảng im lặng', 'khoảng im lặng'],
    {
      path: '/monitoring/silences',
      table: 'monitoring_silences',
      nameColumn: 'reason',
    },
    MANAGED,
  ),
  outside(
    'alert',
    ['alert', 'alerts', 'cảnh báo', 'cảnh báo'],
    {
      path: '/monitoring/alerts',
      table: 'monitoring_alerts',
      nameColumn: 'series_key',
      withoutDocuments: true,
    },
    MONITORING,
  ),
  outside(
    'agent',
    ['agent', 'agents', 'agent', 'agent'],
    {
      path: '/monitoring/agents',
      table: 'monitoring_agents',
      nameColumn: 'hostname',
    },
    MONITORING,
  ),
  outside(
    'license',
    ['license', 'licenses', 'giấy phép', 'giấy phép'],
    {
      path: '/monitoring/licenses',
      table: 'monitoring_licenses',
    },
    MONITORING,
  ),
  outside('webhook', ['webhook', 'webhooks', 'webhook', 'webhook'], { path: '/webhooks', table: 'webhooks' }, [
    'webhooks.view',
    'webhooks.manage',
  ]),
  outside(
    'option_item',
    ['item of an option list', 'items of option lists', 'mục của danh sách lựa chọn', 'mục của danh sách lựa chọn'],
    { path: '/options', table: 'option_items', nameColumn: 'value', pathColumn: 'list' },
    ['options.view', 'options.manage'],
  ),
  outside('file', ['file', 'files', 'tệp', 'tệp'], { path: '/files', table: 'files' }, ['files.view', 'files.manage']),
  outside('user', ['user', 'users', 'người dùng', 'người dùng'], { path: '/users', table: 'users' }, IDENTITY),
  outside('team', ['team', 'teams', 'nhóm', 'nhóm'], { path: '/teams', table: 'teams' }, IDENTITY),
]
