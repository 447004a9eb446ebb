import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PortBus } from '../../apps/collector/bus/bus-port.ts'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import { ThreadBus } from '../../apps/collector/bus/thread-bus.ts'
import { encodeEntry } from '../../core/bus/entry.ts'
import { SampleBatch } from '../../core/series/sample-batch.ts'
import { until } from '../support/until.ts'
import { agentId, companyId, serverId } from './rig.ts'

const threadUrl = new URL('../../apps/collector/bus/bus-thread.ts', import.meta.url)
let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-bus-thread-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const path = () => join(directory, 'bus.sqlite')
const failures: Error[] = []
const open = (changes: { bytesMax?: number; onPublished?: () => void; threadUrl?: URL } = {}) =>
  ThreadBus.open({
    threadUrl: changes.threadUrl ?? threadUrl,
    options: { path: path(), bytesMax: changes.bytesMax ?? 1024 * 1024, ageMaxMs: 3_600_000, groupWaitMs: 1 },
    onPublished: changes.onPublished ?? (() => {}),
    onError: facts => {
      throw new Error(JSON.stringify(facts))
    },
    onFailure: error => void failures.push(error),
  })

const entry = (seq: number) =>
  encodeEntry({ companyId, serverId, agentId, receivedAtMs: 1, seq, intervalSeconds: 30 }, new SampleBatch())

test('[BUS-004] what threads publish is on the disk once they hear of it, in the order of each', async () => {
  let published = 0
  const bus = await open({ onPublished: () => published++ })
  const one = new PortBus(bus.connect())
  const other = new PortBus(bus.connect())
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? one : other).publish(serverId, entry(index))),
  )
  expect(answers.every(answer => answer === null)).toBe(true)
  const reader = new FileBusReader(path(), ['test'])
  expect(await reader.lastPosition()).toBe(200)
  expect(await one.stats()).toMatchObject({ lagEntries: 200, bytes: 200 * entry(0).length })
  await until('the wake-up', () => published > 0)
  // What is pending at the stop is committed before the thread ends.
  const last = bus.publish(serverId, entry(200))
  const closing = bus.close()
  expect(await last).toBeNull()
  await closing
  expect(await reader.lastPosition()).toBe(201)
  await reader.close()
  expect(failures).toEqual([])
})

test('[BUS-005] a full bus refuses in every thread', async () => {
  const bus = await open({ bytesMax: entry(0).length * 3 })
  const port = new PortBus(bus.connect())
  const answers: (string | null)[] = []
  for (let seq = 0; seq < 5; seq++) answers.push(await port.publish(serverId, entry(seq)))
  expect(answers).toEqual([null, null, null, 'full', 'full'])
  await bus.close()
})

test('a bus that cannot be opened is said in words, and the process may go on', async () => {
  writeFileSync(path(), 'no database, but long enough to be taken for one'.repeat(400))
  expect(open()).rejects.toThrow(`cannot open bus ${path()}`)
  await until('the thread has ended', () => true)
  expect(failures).toEqual([])
})

test('a bus thread that dies is told to its process, which ends', async () => {
  const dying = join(directory, 'dying-bus-thread.ts')
  writeFileSync(
    dying,
    `import ${JSON.stringify(threadUrl.pathname)}
     const open = self.onmessage
     self.onmessage = event => {
       if (event.data.kind === 'connect') setTimeout(() => { throw new Error('out of order') })
       open(event)
     }`,
  )
  const bus = await open({ threadUrl: new URL(`file://${dying}`) })
  await until('the failure', () => failures.length > 0)
  expect(failures[0]?.message).toContain('the bus thread failed')
  failures.length = 0
  expect(bus).toBeInstanceOf(ThreadBus)
})
