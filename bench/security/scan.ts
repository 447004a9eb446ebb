// What does a scan of 800 packages cost the agent (MAT-003, MAT-024): CPU, memory above that of the idle agent, the
// longest time that it keeps the thread, and bytes of the report as it is sent? Each in a process of its own, since
// code that runs for the first time and memory that was never touched are part of the cost.
import { Database } from 'bun:sqlite'
import { readFileSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { dpkgRoot, SystemRoot } from '../../test/support/package-tools.ts'

const PACKAGES = 800
const HEADER_BYTES = 60_000
const MEASURE = resolve(import.meta.dir, 'scan-process.ts')

export async function benchScan(): Promise<readonly Record<string, unknown>[]> {
  using debian = dpkgOf(PACKAGES)
  using alma = rpmOf(PACKAGES)
  using large = dpkgOf(20_000)
  return [
    { question: '800 packages of dpkg', ...(await measure(debian)) },
    { question: '800 packages of rpm, 60 KB a header', ...(await measure(alma)) },
    { question: '20,000 packages of dpkg', ...(await measure(large)) },
  ]
}

async function measure(root: SystemRoot): Promise<Record<string, unknown>> {
  const child = Bun.spawn([process.execPath, MEASURE, root.path], { stdout: 'pipe', stderr: 'inherit' })
  const output = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error('the scan failed')
  return JSON.parse(output)
}

/** Packages of this host under many names: their paragraphs are as long as real ones. */
function dpkgOf(count: number): SystemRoot {
  const root = dpkgRoot()
  const own = readFileSync('/var/lib/dpkg/status', 'utf8')
    .split('\n\n')
    .filter(text => text.includes('install ok installed'))
  const all = Array.from({ length: count }, (_, index) => {
    const paragraph = own[index % own.length]!
    return index < own.length ? paragraph : paragraph.replace(/^Package: .*$/m, `$&-${Math.floor(index / own.length)}`)
  })
  root.write('var/lib/dpkg/status', `${all.join('\n\n')}\n\n`)
  return root
}

/** A database as rpm's, whose headers have the names of this host's packages and the bulk of lists of files. */
function rpmOf(count: number): SystemRoot {
  const root = new SystemRoot()
  root.write('etc/os-release', 'ID=almalinux\nVERSION_ID=9.4\nID_LIKE="rhel fedora"\n')
  const path = root.write('var/lib/rpm/rpmdb.sqlite', '')
  rmSync(path)
  using database = new Database(path)
  database.run('CREATE TABLE Packages (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)')
  const insert = database.query('INSERT INTO Packages (blob) VALUES (?)')
  const own = [...readFileSync('/var/lib/dpkg/status', 'utf8').matchAll(/^Package: (.*)$/gm)].map(found => found[1]!)
  for (let index = 0; index < count; index++) {
    const name = `${own[index % own.length]}${index < own.length ? '' : '-more'}`
    const version = `${index % 9}.${index % 31}.${index % 7}`
    insert.run(
      headerOf([
        [1000, name],
        [1001, version],
        [1002, `${index % 13}.el9_4`],
        [1011, 'AlmaLinux'],
        [1022, 'x86_64'],
        [1044, `${name}-${version}-1.el9.src.rpm`],
        [1117, 'x'.repeat(HEADER_BYTES)],
      ]),
    )
  }
  return root
}

function headerOf(texts: readonly (readonly [number, string])[]): Buffer {
  const data = Buffer.from(texts.map(([, text]) => `${text}\0`).join(''))
  const header = Buffer.alloc(8 + texts.length * 16)
  header.writeUInt32BE(texts.length, 0)
  header.writeUInt32BE(data.length, 4)
  let offset = 0
  for (const [index, [tag, text]] of texts.entries()) {
    for (const [place, value] of [tag, 6, offset, 1].entries()) header.writeUInt32BE(value, 8 + index * 16 + place * 4)
    offset += Buffer.byteLength(text) + 1
  }
  return Buffer.concat([header, data])
}
