// The packages of a server, as the matcher knows them from its last report.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { PackagesView } from '../../../views/server/security.ts'
import { serverSecurityWords } from '../../../words/server-security.ts'
import { param, setParams } from '../../address/router.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import type { TabProps } from './late-props.ts'

const t = textsOf(serverSecurityWords)

/** The matcher is asked once who types has stopped. */
const TYPED_MS = 300

type Row = PackagesView['rows'][number]

const columns: readonly Column<Row>[] = [
  { key: 'name', title: t('name'), isName: true, cell: row => <span class="text">{row.name}</span> },
  { key: 'version', title: t('version'), cell: row => <span class="text">{row.version}</span> },
  { key: 'arch', title: t('architecture'), cell: row => row.arch },
  { key: 'source', title: t('source'), from: 'medium', cell: row => <span class="text">{row.source}</span> },
  { key: 'ecosystem', title: t('ecosystem'), from: 'medium', cell: row => row.ecosystem },
]

function useTyped(text: string): string {
  const [typed, setTyped] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPED_MS)
    return () => clearTimeout(timer)
  }, [text])
  return typed
}

type ListProps = { readonly data: PackagesView; readonly isSearched: boolean }

function PackageList({ data: { rows, reason }, isSearched }: ListProps) {
  if (reason === 'no_data') return <p>{t('reason_no_data')}</p>
  if (reason === null && rows.length === 0) return <p>{t(isSearched ? 'no_matching_package' : 'reason_no_data')}</p>
  if (reason !== null) return <p class="banner">{t(`reason_${reason}`)}</p>
  const nameOf = (row: Row): string => `${row.name} ${row.version} ${row.arch}`
  return <Table label={t('packages')} columns={columns} rows={rows} keyOf={nameOf} nameOf={nameOf} />
}

/** What is searched for: the field, and the address behind it, which Back changes too. */
function useSearch() {
  const q = param('q')
  const [text, setText] = useState(q)
  const typed = useTyped(text.trim())
  // What this field put into the address: only what comes from elsewhere is taken over, and no key is lost.
  const own = useRef(q)
  useEffect(() => {
    if (typed === own.current) return
    own.current = typed
    setParams({ q: typed || null, cursor: null }, 'replace')
  }, [typed])
  useEffect(() => {
    if (q === own.current) return
    own.current = q
    setText(q)
  }, [q])
  return { q, text, setText }
}

/** A server that is deleted has no packages to look at, whatever the matcher still keeps of it. */
export const PackagesTab = ({ server, serverId }: TabProps) =>
  server.isDeleted ? <p class="notice">{t('reason_deleted')}</p> : <Packages serverId={serverId} />

function Packages({ serverId }: Pick<TabProps, 'serverId'>) {
  const { q, text, setText } = useSearch()
  const cursor = param('cursor')
  const show = (next: string): void => setParams({ cursor: next || null })
  const { data, fault, isCurrent, reload } = useView<PackagesView>('server-packages', { server: serverId, q, cursor })
  return (
    <>
      <div class="toolbar">
        <input
          type="search"
          aria-label={t('find_package')}
          placeholder={t('find_package')}
          maxLength={128}
          value={text}
          onInput={event => setText(event.currentTarget.value)}
        />
        {cursor === '' ? null : (
          <button type="button" onClick={() => show('')}>
            {t('from_start')}
          </button>
        )}
        {data?.next == null || !isCurrent ? null : (
          <button type="button" onClick={() => show(data.next ?? '')}>
            {t('next')}
          </button>
        )}
      </div>
      {data !== null ? (
        <PackageList data={data} isSearched={q !== ''} />
      ) : fault === null ? (
        <Skeleton />
      ) : (
        <Fault fault={fault} onRetry={reload} />
      )}
    </>
  )
}
