// What the security family costs, part by part: `bun bench/security.ts [PART…]`, without a name all of them. A part is
// a file of bench/security/ with one function that answers with the members of its lines.
import { benchFleet } from './security/fleet.ts'
import { benchImport } from './security/import.ts'
import { benchMatchDebsecan } from './security/match-debsecan.ts'
import { benchReportToFinding } from './security/report-to-finding.ts'
import { benchScan } from './security/scan.ts'

const parts: Readonly<Record<string, () => Promise<readonly Record<string, unknown>[]>>> = {
  scan: benchScan,
  fleet: () => benchFleet(),
  import: benchImport,
  'report-to-finding': benchReportToFinding,
  'match-debsecan': benchMatchDebsecan,
}

const wanted = process.argv.slice(2)
const unknown = wanted.find(name => parts[name] === undefined)
if (unknown !== undefined) throw new Error(`no part ${unknown}: name ${Object.keys(parts).join(', ')}`)
for (const [name, run] of Object.entries(parts)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  for (const answer of await run()) console.log(JSON.stringify({ bench: 'security', part: name, ...answer }))
}
