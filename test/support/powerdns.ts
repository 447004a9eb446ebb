// A real PowerDNS with its HTTP API on free ports of 127.0.0.1, and an SQLite database of its own.
import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../apps/standalone/ports.ts'
import { until } from './until.ts'

const SCHEMA = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql'

type Zone = { readonly serial: number; readonly rrsets: readonly RecordSet[] }
type RecordSet = {
  readonly name: string
  readonly type: string
  readonly ttl: number
  readonly records: readonly { readonly content: string }[]
}

export class PowerDns {
  private constructor(
    readonly port: number,
    readonly apiUrl: string,
    readonly apiKey: string,
    private readonly process: Bun.Subprocess,
  ) {}

  static async start(folder: string): Promise<PowerDns> {
    if (!existsSync(SCHEMA)) throw new Error(`${SCHEMA} is missing: apt-get install pdns-server pdns-backend-sqlite3`)
    mkdirSync(folder, { recursive: true })
    const database = join(folder, 'pdns.db')
    const sqlite = new Database(database)
    sqlite.exec(readFileSync(SCHEMA, 'utf8'))
    sqlite.close()
    const [port, apiPort, apiKey] = [freePort(), freePort(), crypto.randomUUID()]
    const settings = [
      'launch=gsqlite3',
      `gsqlite3-database=${database}`,
      'local-address=127.0.0.1',
      `local-port=${port}`,
      'api=yes',
      `api-key=${apiKey}`,
      'webserver-address=127.0.0.1',
      `webserver-port=${apiPort}`,
      'webserver-allow-from=127.0.0.1',
      'security-poll-suffix=',
      `socket-dir=${folder}`,
    ]
    writeFileSync(join(folder, 'pdns.conf'), `${settings.join('\n')}\n`)
    const child = Bun.spawn(['/usr/sbin/pdns_server', `--config-dir=${folder}`, '--daemon=no', '--guardian=no'], {
      stdout: 'ignore',
      stderr: 'ignore',
    })
    const server = new PowerDns(port, `http://127.0.0.1:${apiPort}`, apiKey, child)
    await until('PowerDNS answers', () =>
      server.call('GET', '').then(
        () => true,
        () => false,
      ),
    )
    return server
  }

  private async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.apiUrl}/api/v1/servers/localhost${path}`, {
      method,
      headers: { 'X-API-Key': this.apiKey },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`PowerDNS answered ${response.status}: ${text}`)
    return text === '' ? null : JSON.parse(text)
  }

  /** Makes a zone that has its SOA and one NS. */
  createZone(name: string): Promise<unknown> {
    return this.call('POST', '/zones', { name: `${name}.`, kind: 'Native', nameservers: [`ns1.${name}.`] })
  }

  /** From now on changes of the zone by the API leave its serial as it is. */
  keepSerial(name: string): Promise<unknown> {
    return this.call('PUT', `/zones/${name}.`, { soa_edit_api: '' })
  }

  /** What the server has of a zone. */
  zone(name: string): Promise<Zone> {
    return this.call('GET', `/zones/${name}.`) as Promise<Zone>
  }

  /** Changes a zone beside the hub. */
  replace(zone: string, set: RecordSet): Promise<unknown> {
    return this.call('PATCH', `/zones/${zone}.`, { rrsets: [{ ...set, changetype: 'REPLACE' }] })
  }

  async stop(): Promise<void> {
    this.process.kill('SIGTERM')
    await this.process.exited
  }
}
