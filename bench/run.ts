// Runs benchmarks, each in a fresh process, and keeps what they say: `bun run bench [NAME…] [-- --keep]`. A benchmark
// prints JSON lines with a member `bench`; with --keep each goes into bench/history.jsonl with commit, time and host.
import { appendFileSync, existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'

const benches: Readonly<Record<string, readonly string[]>> = {
  decode: ['decode.ts'],
  evaluate: ['evaluate.ts'],
  consume: ['consume.ts', '2000', '20', '1'],
  'fleet-state': ['fleet-state.ts'],
  insert: ['insert.ts'],
  'samples-size': ['samples-size.ts', '8', '24'],
  'samples-rollups': ['samples-rollups.ts', '300', '60'],
  'samples-reads': ['samples-reads.ts', '4000', '100', '25', '300'],
  'samples-delete': ['samples-delete.ts', '1000', '5', '5'],
  ingest: ['ingest.ts'],
  known: ['known.ts'],
  connections: ['connections.ts'],
  'whole-path': ['whole-path.ts', '2000', '20', '150'],
  'fleet-pace': ['fleet-pace.ts'],
  'first-sight': ['first-sight.ts'],
  'event-latency': ['event-latency.ts'],
  announcements: ['announcements.ts'],
  'redis-path': ['redis-path.ts'],
  takeover: ['takeover.ts'],
  'outside-load': ['outside-load.ts'],
  growth: ['simulate-growth.ts'],
  latency: ['latency.ts', '100'],
  idle: ['idle.ts'],
  hub: ['hub.ts'],
  resources: ['resources.ts'],
  matching: ['matching.ts'],
  security: ['security.ts', 'scan', 'fleet', 'import', 'report-to-finding'],
  'match-debsecan': ['security.ts', 'match-debsecan'],
  'findings-list': ['security/hub.ts'],
  'hub-events': ['security/hub-events.ts'],
  web: ['web.ts'],
}

const words = process.argv.slice(2).filter(word => word !== '--')
const isKept = words.includes('--keep')
const wanted = words.filter(word => !word.startsWith('--'))
const commit = (await new Response(Bun.spawn(['git', 'rev-parse', '--short', 'HEAD']).stdout).text()).trim()
const host = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, bun ${Bun.version}`

for (const [name, [file = '', ...args]] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const path = join(import.meta.dir, file)
  if (!existsSync(path)) throw new Error(`bench ${name}: ${file} is missing`)
  const child = Bun.spawn(['bun', path, ...args], { stdout: 'pipe', stderr: 'inherit' })
  const output = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(`bench ${name} failed`)
  for (const line of output.split('\n').filter(text => text.startsWith('{'))) {
    console.log(line)
    if (!isKept) continue
    const entry = { at: new Date().toISOString(), commit, host, ...JSON.parse(line) }
    appendFileSync(join(import.meta.dir, 'history.jsonl'), `${JSON.stringify(entry)}\n`)
  }
}
