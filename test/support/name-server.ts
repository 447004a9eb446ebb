// A real name server (NSD) for one zone on a free port of 127.0.0.1, with the records that a test writes.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../apps/standalone/ports.ts'
import { type ForeignProgram, startProgram } from './foreign-program.ts'

/** Serves `file`, a master file of `zone`, until it is stopped. */
export async function startNameServer(folder: string, zone: string, file: string): Promise<ForeignProgram> {
  mkdirSync(folder, { recursive: true })
  const port = freePort()
  writeFileSync(join(folder, 'zone'), file)
  const settings = [
    'server:',
    `  ip-address: 127.0.0.1@${port}`,
    '  username: ""',
    '  chroot: ""',
    `  zonesdir: "${folder}"`,
    '  database: ""',
    `  pidfile: "${join(folder, 'nsd.pid')}"`,
    `  xfrdfile: "${join(folder, 'xfrd.state')}"`,
    `  zonelistfile: "${join(folder, 'zone.list')}"`,
    `  xfrdir: "${folder}"`,
    '  server-count: 1',
    'remote-control:',
    '  control-enable: no',
    'zone:',
    `  name: ${zone}`,
    '  zonefile: zone',
  ]
  const configFile = join(folder, 'nsd.conf')
  writeFileSync(configFile, `${settings.join('\n')}\n`)
  return startProgram(['nsd', '-d', '-c', configFile], port)
}
