// Findings by vulnerability, package or server: how pressing each group is, how many it has, and what an upgrade mends.
import { filterText, parseFilter } from '../../../address/filter-language.ts'
import type { FindingGroup, FindingsView } from '../../../views/findings.ts'
import { findingsWords } from '../../../words/findings.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import type { Column } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { PriorityMark } from './finding-face.tsx'

const t = textsOf(findingsWords)

type Grouping = NonNullable<FindingsView['groupedBy']>

export const GroupChoice = () => (
  <label class="inline">
    <span class="muted">{t('group_by')}</span>
    <select
      value={param('group')}
      onChange={event => setParams({ group: event.currentTarget.value || null, offset: null })}
    >
      <option value="">{t('group_none')}</option>
      <option value="cve">{t('vulnerability')}</option>
      <option value="package">{t('package')}</option>
      <option value="server">{t('server')}</option>
    </select>
  </label>
)

/** The findings of a group: those that the filter has, and of them these alone. */
function hrefOfFindings(key: 'package' | 'server' | 'attached', value: string): string {
  const instead = key === 'package' ? ['package'] : ['server', 'attached']
  const others = parseFilter(param('q')).filter(term => term.key === null || !instead.includes(term.key))
  return hrefTo('findings', {}, { q: filterText([...others, { key, isExcluded: false, operator: '=', value }]) })
}

/** What a group is called, and where its findings are. */
const faceOf: Readonly<Record<Grouping, (group: FindingGroup) => { readonly name: string; readonly href: string }>> = {
  cve: ({ key }) => ({ name: key, href: hrefTo('vulnerability', { cve: key }) }),
  package: ({ key }) => ({ name: key, href: hrefOfFindings('package', key) }),
  server: ({ key, title }) =>
    title === null
      ? { name: key === '' ? t('no_server') : key, href: hrefOfFindings('attached', 'no') }
      : { name: title, href: hrefOfFindings('server', title) },
}

export const groupName = (by: Grouping, group: FindingGroup): string => faceOf[by](group).name
export const groupHref = (by: Grouping, group: FindingGroup): string => faceOf[by](group).href

const fixText = ({ fixed, findings }: FindingGroup): string =>
  fixed === 0 ? NOTHING : fixed === findings ? t('fix_all') : t('fix_some', { count: fixed })

/** What is known of it, and that it is open nowhere where the list holds other states too. */
const notesOf = ({ isExploited, open }: FindingGroup): string =>
  [isExploited ? t('exploited') : '', open === 0 ? t('open_nowhere_short') : ''].filter(Boolean).join(', ') || NOTHING

const vulnerabilities: Column<FindingGroup> = {
  key: 'vulnerabilities',
  title: t('vulnerabilities'),
  isNumber: true,
  from: 'medium',
  cell: row => count(row.vulnerabilities),
}
const packages: Column<FindingGroup> = {
  key: 'packages',
  title: t('packages_of'),
  isNumber: true,
  from: 'medium',
  cell: row => count(row.packages),
}

/** What tells more of groups of a kind, before and after how many findings they have. */
const ownColumns: Readonly<Record<Grouping, readonly Column<FindingGroup>[]>> = {
  cve: [packages],
  package: [vulnerabilities],
  server: [vulnerabilities, packages],
}
const about: Column<FindingGroup> = {
  key: 'title',
  title: t('about'),
  from: 'medium',
  cell: row => <span class="text">{row.title ?? NOTHING}</span>,
}
const titles = { cve: t('vulnerability'), package: t('package'), server: t('server') } as const

const columnsOf = (by: Grouping): readonly Column<FindingGroup>[] => [
  {
    key: 'priority',
    title: t('priority'),
    cell: row => <PriorityMark priority={row.priority} state={row.open > 0 ? 'open' : 'resolved'} />,
  },
  {
    key: by,
    title: titles[by],
    isName: true,
    cell: row => (
      <a class="text" href={groupHref(by, row)}>
        {groupName(by, row)}
      </a>
    ),
  },
  ...(by === 'cve' ? [about] : []),
  { key: 'findings', title: t('findings_count'), isNumber: true, cell: row => count(row.findings) },
  ...ownColumns[by],
  { key: 'fix', title: t('mendable'), cell: fixText },
  { key: 'notes', title: t('state'), cell: notesOf },
  { key: 'risk', title: t('risk'), isNumber: true, cell: row => count(row.risk) },
]

export const groupColumns: Readonly<Record<Grouping, readonly Column<FindingGroup>[]>> = {
  cve: columnsOf('cve'),
  package: columnsOf('package'),
  server: columnsOf('server'),
}
