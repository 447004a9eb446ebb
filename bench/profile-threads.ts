// Where the processor's time goes in every thread of a process, its native code and the kernel included: what a profile
// of the runtime does not see. Runs a command and prints, for the busiest threads of each process that compiled code,
// the functions that were on the processor, those that were anywhere on the stack, and what compiled code called native
// one. Needs perf (Debian: linux-perf) and root, or kernel.perf_event_paranoid -1.
// Usage: bun bench/profile-threads.ts [--frequency 499] [--threads 6] -- COMMAND…
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { frequency: { type: 'string', default: '499' }, threads: { type: 'string', default: '6' } },
})
if (positionals.length === 0) throw new Error('bun bench/profile-threads.ts [--frequency N] [--threads N] -- COMMAND…')
const SHOWN = 20

type Code = { readonly at: number; readonly bytes: number; readonly name: string }

/**
 * The functions that a runtime compiled, as its dump has them (perf's jitdump-specification.txt): of two at one address
 * the later one stays.
 */
function compiledIn(path: string): Code[] {
  const dump = readFileSync(path)
  const codes = new Map<number, Code>()
  for (let at = dump.readUInt32LE(8); at + 16 <= dump.length; ) {
    const [kind, length] = [dump.readUInt32LE(at), dump.readUInt32LE(at + 4)]
    if (length < 16 || at + length > dump.length) break
    if (kind === 0) {
      const start = Number(dump.readBigUInt64LE(at + 32))
      const name = dump.toString('utf8', at + 56, dump.indexOf(0, at + 56)).replace(/#\w+/g, '')
      codes.set(start, { at: start, bytes: Number(dump.readBigUInt64LE(at + 40)), name })
    }
    at += length
  }
  return [...codes.values()].sort((one, other) => one.at - other.at)
}

/** The function around an address, null where none is. */
function functionAt(codes: readonly Code[], address: number): string | null {
  let [from, to] = [0, codes.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (codes[middle]!.at <= address) from = middle + 1
    else to = middle
  }
  const found = codes[from - 1]
  return found && address < found.at + found.bytes ? found.name : null
}

class Counts extends Map<string, number> {
  add(name: string): void {
    this.set(name, (this.get(name) ?? 0) + 1)
  }
  print(title: string): void {
    console.log(`  ${title}`)
    for (const [name, count] of [...this].sort((a, b) => b[1] - a[1]).slice(0, SHOWN))
      console.log(`  ${count}\t${name}`)
  }
}

/** What was seen of one thread. */
class ThreadProfile {
  samples = 0
  readonly self = new Counts()
  readonly within = new Counts()
  readonly calls = new Counts()

  constructor(readonly name: string) {}

  add(stack: readonly { readonly name: string; readonly isCompiled: boolean }[]): void {
    const [top] = stack
    if (!top) return
    this.samples++
    this.self.add(top.name)
    for (const name of new Set(stack.filter(frame => frame.isCompiled).map(frame => frame.name))) this.within.add(name)
    const callers = stack.filter(frame => frame.isCompiled).slice(0, 2)
    if (!top.isCompiled) this.calls.add([top, ...callers].map(frame => frame.name).join(' < '))
  }
}

const folder = mkdtempSync(join(tmpdir(), 'svc-profile-'))
try {
  const record = join(folder, 'perf.data')
  const perf = Bun.spawn(['perf', 'record', '-a', '-k', '1', '-F', values.frequency, '-g', '-o', record], {
    stdout: 'ignore',
    stderr: 'ignore',
  })
  await Bun.sleep(500)
  const child = Bun.spawn([...positionals], {
    env: { ...process.env, BUN_JSC_useJITDump: '1', BUN_JSC_jitDumpDirectory: folder },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  await child.exited
  perf.kill('SIGINT')
  await perf.exited

  // jit-<thread>-<process>.dump
  const codesOf = new Map<string, readonly Code[]>()
  for (const name of readdirSync(folder)) {
    const [, pid] = /^jit-\d+-(\d+)\.dump$/.exec(name) ?? []
    if (pid !== undefined) codesOf.set(pid, compiledIn(join(folder, name)))
  }
  const threads = new Map<string, ThreadProfile>()
  const script = Bun.spawn(['perf', 'script', '-i', record, '-F', 'comm,pid,tid,ip,sym,dso'], { stderr: 'ignore' })
  let thread: ThreadProfile | null = null
  let codes: readonly Code[] = []
  let stack: { name: string; isCompiled: boolean }[] = []
  for await (const line of createInterface({ input: Readable.fromWeb(script.stdout) })) {
    const [, command, pid = '', tid] = /^(\S.*?)\s+(\d+)\/(\d+)/.exec(line) ?? []
    if (command !== undefined) {
      const known = codesOf.get(pid)
      const key = `${command} ${pid}/${tid}`
      thread = known ? (threads.get(key) ?? new ThreadProfile(key)) : null
      if (thread) threads.set(key, thread)
      codes = known ?? []
      stack = []
    } else if (line.trim() === '') {
      thread?.add(stack)
      thread = null
    } else if (thread) {
      const [, address = '0', symbol = '', object = ''] = /^\s+([0-9a-f]+) (.*) \((.*)\)$/.exec(line) ?? []
      const compiled = functionAt(codes, Number.parseInt(address, 16))
      stack.push({ name: compiled ?? `${symbol} (${object.split('/').at(-1)})`, isCompiled: compiled !== null })
    }
  }
  const busiest = [...threads.values()].sort((a, b) => b.samples - a.samples).slice(0, Number(values.threads))
  for (const each of busiest) {
    console.log(`\n${each.name}: ${each.samples} samples`)
    each.self.print('on the processor')
    each.within.print('on the stack')
    each.calls.print('native code, and the compiled code that called it')
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
