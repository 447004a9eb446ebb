// What is around every page, and the page that the address names.
import { useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { missingKey, type PageName } from '../../address/site-map.ts'
import { shellWords } from '../../words/shell.ts'
import { currentPage } from '../address/router.ts'
import { waitingSeconds } from '../api.ts'
import { clockMs, connection, dataAtMs } from '../connection/live.ts'
import { fullTime } from '../format.ts'
import { lateParts } from '../late-parts.ts'
import { pageFiles } from '../pages/all-pages.ts'
import { collectorState } from '../parts/collector-banner.tsx'
import { Fault, NoPermission } from '../parts/fault.tsx'
import { Skeleton } from '../parts/skeleton.tsx'
import { company, may, textsOf } from '../session.ts'
import { lostViews } from '../view.ts'
import { Head } from './head.tsx'
import { Navigation } from './navigation.tsx'
import { overlay } from './overlay.ts'
import { pageTitle } from './page-title.ts'
import { SessionDialog, SessionWarning } from './session-dialog.tsx'

const t = textsOf(shellWords)

const loaded = new Map<PageName, ComponentType>()

/** Loads the file of a page, so that it is there when it is drawn. */
export async function loadPage(name: PageName): Promise<void> {
  loaded.set(name, loaded.get(name) ?? (await pageFiles[name]()))
}

const notFound = { status: 404, message: '', errors: {}, requestId: null }
const notLoaded = { status: 0, message: t('unreachable'), errors: {}, requestId: null }

function CurrentPage() {
  const page = currentPage.value
  const name = page?.name
  const tries = useSignal(0)
  const [failed, setFailed] = useState<PageName | null>(null)
  const [, setShown] = useState<PageName | null>(null)
  // Before the page is drawn, which calls itself by what it shows.
  useMemo(() => {
    if (name !== undefined) pageTitle.value = t(`page_${name}`)
  }, [name])
  useEffect(() => {
    if (name === undefined) return
    setFailed(null)
    loadPage(name)
      .then(() => setShown(name))
      .catch(() => setFailed(name))
  }, [name, tries.value])
  if (page === null || name === undefined) return <Fault fault={notFound} />
  const missing = missingKey(name, may)
  if (missing !== undefined) return <NoPermission permission={missing} />
  const Page = loaded.get(name)
  if (Page !== undefined) return <Page key={JSON.stringify(page)} />
  return failed === name ? <Fault fault={notLoaded} onRetry={() => tries.value++} /> : <Skeleton />
}

/** At the foot of the screen and last in the page, so that nothing moves when one comes or goes. */
function Banners() {
  return (
    <div class="banners">
      {connection.value === 'lost' ? (
        <p class="banner lost" role="alert">
          {t('lost_banner', { time: fullTime(dataAtMs.value) })}
        </p>
      ) : null}
      {lostViews.value.size > 0 && connection.value !== 'lost' ? (
        <p class="banner lost" role="alert">
          {t('gone_banner')}
        </p>
      ) : null}
      {collectorState.value === 'ok' ? null : (
        <p class="banner" role="status">
          {t(`collector_${collectorState.value}`)}
        </p>
      )}
      {waitingSeconds.value > 0 ? (
        <p class="banner" role="status">
          {t('too_many', { seconds: waitingSeconds.value })}
        </p>
      ) : null}
      <SessionWarning />
    </div>
  )
}

const overlays = new Map<NonNullable<typeof overlay.value>, ComponentType>()

function Overlay() {
  const name = overlay.value
  const [, setLoaded] = useState(0)
  useEffect(() => {
    if (name === null || overlays.has(name)) return
    lateParts[name]?.().then(
      part => {
        overlays.set(name, part)
        setLoaded(times => times + 1)
      },
      () => {
        overlay.value = null
      },
    )
  }, [name])
  const Part = name === null ? undefined : overlays.get(name)
  return Part === undefined ? null : <Part />
}

export const App = () => (
  <>
    <a class="skip" href="#content">
      {t('skip')}
    </a>
    <Head />
    <div class="body">
      <Navigation />
      <main
        id="content"
        tabIndex={-1}
        class={connection.value === 'lost' || lostViews.value.size > 0 ? 'stale' : undefined}
      >
        <p class="print-only">
          {company.name} · {fullTime(clockMs.value)}
        </p>
        <CurrentPage />
        <Banners />
      </main>
    </div>
    <Overlay />
    <SessionDialog />
  </>
)
