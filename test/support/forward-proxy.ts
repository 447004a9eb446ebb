// Real forward proxies for tests: tinyproxy speaks HTTP, microsocks SOCKS5. What goes through one comes from 127.0.0.2,
// so that a receiver sees which way it was reached.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../apps/standalone/ports.ts'
import { type ForeignProgram, startProgram } from './foreign-program.ts'

export const PROXY_ADDRESS = '127.0.0.2'
type Login = { readonly username: string; readonly password: string }

export async function startTinyproxy(folder: string, login?: Login): Promise<ForeignProgram> {
  mkdirSync(folder, { recursive: true })
  const port = freePort()
  const settings = [
    `Port ${port}`,
    'Listen 127.0.0.1',
    `Bind ${PROXY_ADDRESS}`,
    'Timeout 20',
    'MaxClients 20',
    'Allow 127.0.0.0/8',
    ...(login ? [`BasicAuth ${login.username} ${login.password}`] : []),
  ]
  const file = join(folder, 'tinyproxy.conf')
  writeFileSync(file, `${settings.join('\n')}\n`)
  return startProgram(['tinyproxy', '-d', '-c', file], port)
}

export async function startMicrosocks(login: Login): Promise<ForeignProgram> {
  const port = freePort()
  const { username, password } = login
  const options = ['-i', '127.0.0.1', '-p', String(port), '-b', PROXY_ADDRESS, '-u', username, '-P', password]
  return startProgram(['microsocks', ...options], port)
}
