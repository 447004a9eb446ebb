// A real name server (NSD) for one zone on a free port of 127.0.0.1, with the records that a test writes.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../apps/standalone/ports.ts'
import { until } from './until.ts'

type NameServerOfTest = { readonly port: number; stop(): Promise<void> }

/** Serves `file`, a master file of `zone`, until it is stopped. */
export async function startNameServer(folder: string, zone: string, file: string): Promise<NameServerOfTest> {
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
  const child = Bun.spawn(['nsd', '-d', '-c', configFile], {
    stdout: 'ignore',
    stderr: 'ignore',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
  })
  await until('the name server', () =>
    Bun.connect({ hostname: '127.0.0.1', port, socket: { data: () => {} } }).then(
      socket => {
        socket.end()
        return true
      },
      () => false,
    ),
  )
  return {
    port,
    async stop() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
