// Findings by vulnerability: how pressing each is, how many there are of it, and whether an upgrade mends them.
import type { FindingGroup } from '../../../views/findings.ts'
import { findingsWords } from '../../../words/findings.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import type { Column } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { PriorityMark } from './finding-face.tsx'

const t = textsOf(findingsWords)

export const GroupChoice = () => (
  <label class="inline">
    <span class="muted">{t('group_by')}</span>
    <select
      value={param('group')}
      onChange={event => setParams({ group: event.currentTarget.value || null, offset: null })}
    >
      <option value="">{t('group_none')}</option>
      <option value="cve">{t('vulnerability')}</option>
    </select>
  </label>
)

const fixText = ({ fixed, findings }: FindingGroup): string =>
  fixed === 0 ? NOTHING : fixed === findings ? t('fix_all') : t('fix_some', { count: fixed })

/** What is known of it, and that it is open nowhere where the list holds other states too. */
const notesOf = ({ isExploited, open }: FindingGroup): string =>
  [isExploited ? t('exploited') : '', open === 0 ? t('open_nowhere_short') : ''].filter(Boolean).join(', ') || NOTHING

export const groupColumns: readonly Column<FindingGroup>[] = [
  {
    key: 'priority',
    title: t('priority'),
    cell: row => <PriorityMark priority={row.priority} state={row.open > 0 ? 'open' : 'resolved'} />,
  },
  {
    key: 'vulnerability',
    title: t('vulnerability'),
    isName: true,
    cell: row => <a href={hrefTo('vulnerability', { cve: row.vulnId })}>{row.vulnId}</a>,
  },
  {
    key: 'title',
    title: t('about'),
    from: 'medium',
    cell: row => <span class="text">{row.title ?? NOTHING}</span>,
  },
  { key: 'findings', title: t('findings_count'), isNumber: true, cell: row => count(row.findings) },
  { key: 'packages', title: t('packages_of'), isNumber: true, from: 'medium', cell: row => count(row.packages) },
  { key: 'fix', title: t('mendable'), cell: fixText },
  { key: 'notes', title: t('state'), cell: notesOf },
  { key: 'risk', title: t('risk'), isNumber: true, cell: row => count(row.risk) },
]
