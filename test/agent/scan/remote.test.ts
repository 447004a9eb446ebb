import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { AgentConfigSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { makeCertificate } from '../certificate.ts'
import { LaneRig } from './lane-rig.ts'

setDefaultTimeout(60_000)

let folder: string
let certificate: ReturnType<typeof makeCertificate>

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'scan-remote-'))
  certificate = makeCertificate(folder)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const NO_KEYS = { 'scan.matcher_url': undefined, 'scan.enrol_code': undefined }
const keys = () => ({ ...NO_KEYS, 'tls.ca_file': certificate.certFile })
const configWith = (matcherUrl: string, enrolCode: string) =>
  create(AgentConfigSchema, { etag: 'a', scan: { matcherUrl, enrolCode } })
const codeOf = (rig: LaneRig, at: number) => JSON.parse(rig.matcher.of('/enroll')[at]!.body.toString()).code

test('[MAT-047] the collector tells where packages go and by which code; what it leaves out later changes nothing', async () => {
  await using rig = new LaneRig(certificate)
  const { settings } = rig.start(keys())
  settings.take(configWith(rig.matcher.url, 'remote'))
  await rig.calls('/report', 1)
  expect(codeOf(rig, 0)).toBe('remote')
  settings.take(create(AgentConfigSchema, { etag: 'b' }))
  await rig.stopLanes()
  rig.start(keys())
  await rig.calls('/report', 2, 90_000_000)
  // A code is used only while there is no scan host.
  settings.take(configWith(rig.matcher.url, 'second'))
  await rig.clock.runFor(3_600_000, 1)
  expect(rig.matcher.of('/enroll')).toHaveLength(1)
})

test('[MAT-047] an address without https is dropped with a warning', async () => {
  await using rig = new LaneRig()
  const { settings, status } = rig.start(NO_KEYS)
  settings.take(configWith(rig.matcher.url, 'remote'))
  expect(status.warnings).toEqual(['remote config: scan.matcher_url must be https: it is not taken over'])
  await rig.stopLanes()
  expect(rig.matcher.calls).toEqual([])
  expect(rig.store.remote()).toBeNull()
})

test('[MAT-047] an agent that locks remote configuration out is not scanned by it', async () => {
  await using rig = new LaneRig(certificate)
  const { settings } = rig.start({ ...keys(), allow_remote_config: false })
  settings.take(configWith(rig.matcher.url, 'remote'))
  await rig.stopLanes()
  expect(rig.matcher.calls).toEqual([])
})

test('[MAT-047] keys of the host win over the collector', async () => {
  await using rig = new LaneRig(certificate)
  const { settings } = rig.start({ 'scan.enrol_code': 'local', 'tls.ca_file': certificate.certFile })
  settings.take(configWith('https://127.0.0.1:1/', 'remote'))
  await rig.calls('/report', 1)
  expect(codeOf(rig, 0)).toBe('local')
})

test('an agent that is enrolled anew forgets the scan host that the collector of before made', async () => {
  await using rig = new LaneRig(certificate)
  const { settings } = rig.start(keys())
  settings.take(configWith(rig.matcher.url, 'remote'))
  await rig.calls('/report', 1)
  await rig.stopLanes()
  rig.store.forgetRemote()
  expect({ host: rig.store.host(), remote: rig.store.remote() }).toEqual({ host: null, remote: null })
  rig.start({ 'scan.enrol_code': 'local', 'tls.ca_file': certificate.certFile })
  await rig.calls('/report', 2)
  await rig.stopLanes()
  rig.store.forgetRemote()
  expect(rig.store.host()?.hostId).toBe(rig.matcher.of('/report')[1]!.hostId)
})
