// What viewers of one company cost, one and two hundred of them: questions that reach the collector, CPU time of the
// hub, and its memory. A viewer is a session of its own with a stream, as a browser holds it.
import { cpuSeconds, residentMb } from '../hub-load.ts'
import { cookieOf, type SeededHub } from './seeded-hub.ts'

const VIEWERS = 200
const SECONDS = 30
/** What a tab follows: a page's view, and what its title says. Most look at the servers. */
const followed = ['servers', 'servers', 'alerts', 'overview'] as const

type Viewer = { bytes: number; readonly stop: () => void }

async function openViewer(hub: SeededHub, view: string): Promise<Viewer> {
  const control = new AbortController()
  const search = new URLSearchParams([
    ['v', ` ${view}?company=bench`],
    ['v', ' pulse?company=bench'],
  ])
  const headers = { cookie: cookieOf(await hub.newSession()), accept: 'text/event-stream' }
  const response = await fetch(`${hub.url}/web/live?${search}`, { headers, signal: control.signal })
  if (response.status !== 200) throw new Error(`the stream answered ${response.status}`)
  const viewer = { bytes: 0, stop: () => control.abort() }
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) viewer.bytes += chunk.length
  }
  read().catch(() => {})
  return viewer
}

async function during(hub: SeededHub, viewers: readonly Viewer[]) {
  // What the first answers cost is not what it costs to look on.
  await Bun.sleep(10_000)
  const [asked, bytes, cpu] = [hub.collector.askedCount, hub.collector.answeredBytes, cpuSeconds(hub.pid)]
  const received = () => viewers.reduce((sum, viewer) => sum + viewer.bytes, 0)
  const before = received()
  let mbMax = 0
  for (let second = 0; second < SECONDS; second++) {
    await Bun.sleep(1_000)
    mbMax = Math.max(mbMax, residentMb(hub.pid))
  }
  return {
    asked: hub.collector.askedCount - asked,
    answeredMb: Math.round((hub.collector.answeredBytes - bytes) / 1e5) / 10,
    cpuShare: Math.round(((cpuSeconds(hub.pid) - cpu) * 100) / SECONDS) / 100,
    mbMax,
    sentBytes: Math.round((received() - before) / viewers.length / SECONDS),
  }
}

export async function benchViewers(hub: SeededHub) {
  const atRest = residentMb(hub.pid)
  const first = await openViewer(hub, 'servers')
  const one = await during(hub, [first])
  const others: Viewer[] = []
  for (let at = 1; at < VIEWERS; at++) others.push(await openViewer(hub, followed[at % followed.length] ?? 'servers'))
  const many = await during(hub, [first, ...others])
  for (const viewer of [first, ...others]) viewer.stop()
  return {
    ...{ viewers: VIEWERS, seconds: SECONDS, collector_asked_one: one.asked, collector_asked_many: many.asked },
    ...{ collector_mb_one: one.answeredMb, collector_mb_many: many.answeredMb },
    ...{ hub_cpu_share_one: one.cpuShare, hub_cpu_share_many: many.cpuShare },
    ...{ hub_mb_at_rest: atRest, hub_mb_one: one.mbMax, hub_mb_many: many.mbMax },
    ...{ bytes_a_viewer_second: many.sentBytes },
  }
}
