// The pages of the web interface and their addresses below /c/{company}: known to the hub, which answers 404 for any
// other and puts a page's first data into its document, and to the browser, which draws them.

/** A part of the interface in the navigation. */
type Section = 'monitoring' | 'security' | 'infrastructure' | 'administration'

type SitePage = {
  /** Below the company; `:name` is a parameter, `:name?` one that may be missing at the end. */
  readonly path: string
  /** The view with the page's data (views/all-views.ts); null: the page asks for what it needs itself. */
  readonly view: string | null
  /** The parameters of the address that its view takes, besides those of the path. */
  readonly takes: readonly string[]
  /** Shown in another way, as a map, the page has another view: where the address has this parameter of this value. */
  readonly variant?: {
    readonly param: string
    readonly value: string
    readonly view: string
    readonly takes: readonly string[]
  }
  /** The keys without which the page is not shown. */
  readonly permissions: readonly string[]
  /** One of these keys is needed beside them. */
  readonly anyOf?: readonly string[]
  /** Where it stands in the navigation; missing: it is reached from another page. */
  readonly section?: Section
  /** `g` and this key lead to it. */
  readonly key?: string
}

/** What its name says of a page is left out: its path, its view; and that it takes nothing. */
type PageEntry = Partial<Pick<SitePage, 'path' | 'view' | 'takes'>> & Omit<SitePage, 'path' | 'view' | 'takes'>

const SEE = ['monitoring.view', 'servers.view']
/** Keys with which some kind of resource is seen. */
const SEE_RESOURCES = [
  'network.view',
  'dns.view',
  'certificates.view',
  'connections.view',
  'load-balancers.view',
  'proxies.view',
]

const table = {
  overview: { path: '/', permissions: SEE, section: 'monitoring', key: 'o' },
  servers: {
    takes: ['q', 'sort', 'offset', 'cols'],
    variant: { param: 'view', value: 'map', view: 'host-map', takes: ['q', 'group', 'fill'] },
    permissions: SEE,
    section: 'monitoring',
    key: 's',
  },
  compare: {
    path: '/servers/compare',
    takes: ['metric', 'servers', 'q', 'from', 'to', 'agg'],
    permissions: SEE,
  },
  server: { path: '/servers/:server', permissions: SEE },
  add_servers: {
    path: '/servers/add',
    view: 'arrivals',
    takes: ['license', 'since', 'server'],
    permissions: [...SEE, 'monitoring.manage'],
  },
  alerts: {
    takes: ['q', 'group', 'offset'],
    permissions: ['monitoring.view'],
    section: 'monitoring',
    key: 'a',
  },
  alert: {
    path: '/alerts/:alert',
    permissions: ['monitoring.view'],
  },
  silences: {
    takes: ['past', 'q', 'offset'],
    permissions: ['monitoring.manage'],
    section: 'monitoring',
    key: 'l',
  },
  rules: {
    takes: ['q', 'sort', 'offset'],
    permissions: ['monitoring.manage'],
    section: 'monitoring',
    key: 'r',
  },
  rule_new: {
    path: '/rules/new',
    view: 'rule-editor',
    takes: ['server'],
    permissions: ['monitoring.manage'],
  },
  rule: {
    path: '/rules/:rule',
    takes: ['offset'],
    permissions: ['monitoring.manage'],
  },
  rule_edit: {
    path: '/rules/:rule/edit',
    view: 'rule-editor',
    permissions: ['monitoring.manage'],
  },
  checks: {
    takes: ['q', 'offset'],
    permissions: SEE,
    section: 'monitoring',
    key: 'c',
  },
  check: { path: '/checks/:check', permissions: SEE },
  licenses: {
    takes: ['q', 'offset'],
    permissions: SEE,
    section: 'monitoring',
    key: 'i',
  },
  agents: {
    takes: ['q', 'offset'],
    permissions: SEE,
    section: 'monitoring',
    key: 'e',
  },
  findings: {
    takes: ['q', 'group', 'offset'],
    variant: { param: 'group', value: 'server', view: 'findings-by-server', takes: ['q', 'group', 'offset'] },
    permissions: ['security.view'],
    section: 'security',
    key: 'f',
  },
  finding: {
    path: '/findings/:finding',
    permissions: ['security.view'],
  },
  vulnerability: {
    path: '/by-cve/:cve',
    takes: ['offset'],
    permissions: ['security.view'],
  },
  exceptions: {
    takes: ['past', 'offset'],
    permissions: ['security.view'],
    section: 'security',
    key: 'x',
  },
  infrastructure: {
    permissions: [],
    anyOf: SEE_RESOURCES,
    section: 'infrastructure',
    key: 'n',
  },
  resources: {
    path: '/infrastructure/:kind',
    takes: ['parent', 'q', 'sort', 'trash', 'offset'],
    permissions: [],
    anyOf: SEE_RESOURCES,
  },
  resource: {
    path: '/infrastructure/:kind/:resource',
    permissions: [],
    anyOf: SEE_RESOURCES,
  },
  iac: {
    view: 'iac-runs',
    takes: ['q', 'offset'],
    permissions: ['iac.view'],
    section: 'infrastructure',
    key: 'd',
  },
  iac_run: { path: '/iac/:run', view: 'iac-run', permissions: ['iac.view'] },
  approvals: {
    takes: ['past', 'offset'],
    permissions: ['approvals.view'],
    section: 'infrastructure',
    key: 'p',
  },
  people: {
    takes: ['q', 'offset'],
    permissions: ['identity.view'],
    section: 'administration',
    key: 'u',
  },
  roles: { permissions: ['identity.view'], section: 'administration' },
  notifications: {
    takes: ['state', 'offset'],
    permissions: ['notifications.view'],
    section: 'administration',
    key: 'b',
  },
  webhooks: {
    permissions: ['webhooks.view'],
    section: 'administration',
    key: 'w',
  },
  webhook: { path: '/webhooks/:webhook', takes: ['offset'], permissions: ['webhooks.view'] },
  audit: {
    takes: ['q', 'from', 'to', 'offset'],
    permissions: ['audit.view'],
    section: 'administration',
    key: 't',
  },
  settings: {
    permissions: ['monitoring.view'],
    section: 'administration',
  },
  account: { view: null, permissions: [] },
  system: {
    view: null,
    permissions: ['queues.view'],
    section: 'administration',
    key: 'y',
  },
} as const satisfies Readonly<Record<string, PageEntry>>

export type PageName = keyof typeof table
const whole = ([name, entry]: readonly [string, PageEntry]): readonly [string, SitePage] => [
  name,
  { path: `/${name}`, view: name, takes: [], ...entry },
]
export const sitePages = Object.fromEntries(Object.entries(table).map(whole)) as Readonly<Record<PageName, SitePage>>

/** The first key that a viewer lacks for a page; undefined: it is shown. */
export function missingKey(name: PageName, has: (permission: string) => boolean): string | undefined {
  const { permissions, anyOf } = sitePages[name]
  return permissions.find(permission => !has(permission)) ?? (anyOf?.some(has) ? undefined : anyOf?.[0])
}

export const pageNames = Object.keys(sitePages) as readonly PageName[]

type PathParams = Readonly<Record<string, string>>
export type MatchedPage = { readonly name: PageName; readonly params: PathParams }

/** The parameters of a path, or null where it is not of this form. */
export function paramsOf(form: string, path: string): PathParams | null {
  const parts = path.split('/').filter(part => part !== '')
  const forms = form.split('/').filter(part => part !== '')
  if (parts.length > forms.length) return null
  const params: Record<string, string> = {}
  for (const [index, each] of forms.entries()) {
    const part = parts[index]
    if (part === undefined) {
      if (!each.endsWith('?')) return null
    } else if (!each.startsWith(':')) {
      if (each !== part) return null
    } else {
      const text = decoded(part)
      if (text === null) return null
      params[each.slice(1).replace('?', '')] = text
    }
  }
  return params
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** The page of a path below the company; one with a fixed path goes before one with a parameter in that place. */
export function matchPage(path: string): MatchedPage | null {
  const found = pageNames
    .map(name => ({ name, params: paramsOf(sitePages[name].path, path) }))
    .filter(match => match.params !== null)
    .sort((one, other) => Object.keys(one.params ?? {}).length - Object.keys(other.params ?? {}).length)[0]
  return found?.params ? { name: found.name, params: found.params } : null
}

/** The path of a page below the company. */
export function pathOf(name: PageName, params: PathParams = {}): string {
  const path = sitePages[name].path.replace(/\/:(\w+)\??/g, (_, key: string) => {
    const value = params[key]
    return value === undefined ? '' : `/${encodeURIComponent(value)}`
  })
  return path === '' ? '/' : path
}

type AskedView = { readonly view: string | null; readonly params: URLSearchParams }

/** The view of a page, and what it is asked with: parameters of its path, and those of the address that it takes. */
export function viewOf({ name, params }: MatchedPage, search: URLSearchParams): AskedView {
  const { variant, ...page } = sitePages[name]
  const { view, takes } = variant !== undefined && search.get(variant.param) === variant.value ? variant : page
  const asked = new URLSearchParams(params)
  for (const key of takes) {
    const value = search.get(key)
    if (value !== null && value !== '') asked.set(key, value)
  }
  asked.sort()
  return { view, params: asked }
}
