// A server: how it stands, and a tab for each thing that is known of it.
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { ServerHead } from '../../../views/server/head.ts'
import { serverWords } from '../../../words/server.ts'
import { param, pathParam, setParams } from '../../address/router.ts'
import { pageTitle } from '../../frame/page-title.ts'
import { lateParts } from '../../late-parts.ts'
import { Fault } from '../../parts/fault.tsx'
import { latePart } from '../../parts/late-part.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import type { LateTab, LateTabProps } from './late-props.ts'
import { MetricsTab } from './metrics-tab.tsx'
import { ServerHeadPart } from './server-head.tsx'
import './server.css'

const t = textsOf(serverWords)

const tabs = [
  'metrics',
  'alerts',
  'checks',
  'inventory',
  'agents',
  'security',
  'packages',
  'history',
] as const satisfies readonly Tab[]
type Tab = 'metrics' | LateTab

/** The key that a tab needs beside those of the page. */
const keyOf: Readonly<Partial<Record<Tab, string>>> = {
  ...{ security: 'security.view', packages: 'security.view', history: 'audit.view' },
}

const shownTabs = (): readonly Tab[] => tabs.filter(tab => may(keyOf[tab] ?? 'servers.view'))

/** The tab of the address; metrics where it names none. */
const currentTab = (): Tab => shownTabs().find(tab => tab === param('tab')) ?? 'metrics'

const lateTabs = latePart<LateTabProps>(() => lateParts.serverTabs?.())

/** Beforehand, so that the tab that the address names is there in the first picture. */
export const shownTabIsThere = async (): Promise<void> => {
  if (currentTab() !== 'metrics') await lateTabs.isThere()
}

function Tabs({ current }: { readonly current: Tab }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const all = shownTabs()
    const next = all[(all.indexOf(current) + step + all.length) % all.length] ?? current
    show(next)
    document.getElementById(`tab-${next}`)?.focus()
  }
  const list = useRef<HTMLDivElement>(null)
  // On a phone there is no place for all of them: the chosen one is among those that are seen.
  useLayoutEffect(() => {
    const [bar, tab] = [list.current, document.getElementById(`tab-${current}`)]
    if (bar === null || tab === null) return
    const [seen, its] = [bar.getBoundingClientRect(), tab.getBoundingClientRect()]
    if (its.left < seen.left || its.right > seen.right) bar.scrollLeft += its.right - seen.right
  }, [current])
  const show = (tab: Tab) => setParams({ tab: tab === 'metrics' ? null : tab, q: null, cursor: null })
  return (
    <div ref={list} class="tabs" role="tablist" aria-label={t('tabs')} onKeyDown={move}>
      {shownTabs().map(tab => (
        <button
          type="button"
          key={tab}
          id={`tab-${tab}`}
          role="tab"
          aria-selected={tab === current}
          aria-controls="tab-content"
          tabIndex={tab === current ? 0 : -1}
          onClick={() => show(tab)}
        >
          {t(`tab_${tab}`)}
        </button>
      ))}
    </div>
  )
}

export function ServerPage() {
  const view = usePageView<ServerHead>('server')
  const name = view.data?.name
  useEffect(() => {
    if (name !== undefined) pageTitle.value = name
  }, [name])
  if (view.data === null) return view.fault === null ? <Skeleton /> : <Fault fault={view.fault} onRetry={view.reload} />
  const tab = currentTab()
  const shared = { server: view.data, serverId: pathParam('server'), onChanged: view.reload }
  return (
    <div class="server">
      <ServerHeadPart server={view.data} onChanged={view.reload} />
      <Tabs current={tab} />
      <div id="tab-content" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={-1}>
        {tab === 'metrics' ? <MetricsTab {...shared} /> : <lateTabs.LatePart key={tab} tab={tab} {...shared} />}
      </div>
    </div>
  )
}
