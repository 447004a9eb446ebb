// What logger.test.ts runs on a file system of its own that is small (TMPDIR): the disk is full while lines are logged.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createServiceLogger } from '../../apps/process/logger.ts'
import { fillDisk } from '../support/full-disk.ts'
import { until } from '../support/until.ts'

const directory = process.env.TMPDIR!
const path = join(directory, 'site.log')
const filler = join(directory, 'filler')
const log = createServiceLogger('info', 'all', path)
fillDisk(filler)
for (let line = 0; line < 100; line++) {
  log.info(`full ${line}`)
  await new Promise(resolve => setImmediate(resolve))
}
rmSync(filler)
const lines = () => readFileSync(path, 'utf8').split('\n').slice(0, -1)
await until('the lines to be written', () => {
  log.info('room')
  return lines().length > 100
})
const told: string[] = lines().map(line => JSON.parse(line).msg)
console.log(JSON.stringify(told.filter((line, at) => at < 100 && line === `full ${at}`).length))
