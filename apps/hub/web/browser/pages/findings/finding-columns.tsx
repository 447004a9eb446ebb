// The columns of a list of findings.
import type { FindingRow } from '../../../views/findings.ts'
import { findingsWords } from '../../../words/findings.ts'
import { hrefTo } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import type { Column } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { Due, PriorityMark, stateText } from './finding-face.tsx'

const t = textsOf(findingsWords)

const STATES: readonly FindingRow['state'][] = ['open', 'accepted', 'false_positive', 'resolved']
/** A filter of all findings that a term names: without a state the list shows what is open. */
export const inEveryState = (term: string): string => [term, ...STATES.map(state => `state:${state}`)].join(' ')

/** The same on every list of findings; a list of one server leaves `server` out. */
export const findingColumns: readonly Column<FindingRow>[] = [
  { key: 'priority', title: t('priority'), cell: row => <PriorityMark {...row} /> },
  {
    key: 'vulnerability',
    title: t('vulnerability'),
    isName: true,
    cell: row => <a href={hrefTo('finding', { finding: row.id })}>{row.vulnId}</a>,
  },
  {
    key: 'server',
    title: t('server'),
    cell: row =>
      row.serverId === null ? (
        t('no_server')
      ) : (
        <a class="text" href={hrefTo('server', { server: row.serverId })}>
          {row.serverName}
        </a>
      ),
  },
  { key: 'package', title: t('package'), cell: row => <span class="text">{row.packageKey}</span> },
  { key: 'installed', title: t('installed'), from: 'medium', cell: row => <span class="text">{row.installed}</span> },
  {
    key: 'fixed',
    title: t('fixed_in'),
    cell: row => <span class="text">{row.fix === 'fixed' ? row.fixed : t(`fix_${row.fix}`)}</span>,
  },
  {
    key: 'notes',
    title: t('state'),
    cell: row =>
      [row.isExploited ? t('exploited') : '', stateText(row)].filter(text => text !== '').join(', ') || NOTHING,
  },
  { key: 'due', title: t('due'), cell: row => <Due {...row} /> },
  { key: 'risk', title: t('risk'), isNumber: true, from: 'medium', cell: row => count(row.risk) },
  { key: 'first', title: t('first_seen'), from: 'wide', cell: row => <Time atMs={row.firstSeenAtMs} form="when" /> },
]
