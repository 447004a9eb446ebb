import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import type { Rule } from '../../../core/matching/advisory.ts'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import type { PackageInstance } from '../../../core/matching/package-instance.ts'
import { type Report, reportSchema } from '../../../core/matching/report-schema.ts'
import { rotationText, signedScanText } from '../../../core/matching/scan-protocol.ts'

const report: Report = {
  schema: 1,
  collected_at_ms: 1_760_000_000_000,
  scanner_version: '0.1.0',
  machine_id_hash: 'ab'.repeat(32),
  os: { id: 'debian', version_id: '12', codename: 'bookworm', id_like: [], cpe_name: '' },
  kernel: { running: '6.1.0-18-amd64', build: '#1 SMP', booted_at_ms: 1_759_000_000_000 },
  reboot_required: false,
  livepatch_active: false,
  esm: { attached: false, infra: false, apps: false },
  elts: false,
  modules: {},
  system: 'dpkg',
  error_codes: [],
  packages: {
    name: ['openssl'],
    version: ['3.0.11-1~deb12u2'],
    arch: ['amd64'],
    source: ['openssl'],
    source_version: ['3.0.11-1~deb12u2'],
    module: [''],
    vendor: [''],
  },
}

describe('the report', () => {
  test('[MAT-021] a report of schema 1 is taken, with a list beside it that schema 1 does not know', () => {
    expect(Value.Check(reportSchema, report)).toBe(true)
    expect(Value.Check(reportSchema, { ...report, more: [{ system: 'npm', packages: {} }] })).toBe(true)
  })

  test('[MAT-021] a missing member, another schema, a wrong type and an unknown error code are refused', () => {
    const { kernel: _, ...withoutKernel } = report
    for (const wrong of [
      withoutKernel,
      { ...report, schema: 2 },
      { ...report, reboot_required: 'no' },
      { ...report, error_codes: ['broken'] },
      { ...report, packages: { ...report.packages, name: [1] } },
    ])
      expect(Value.Check(reportSchema, wrong)).toBe(false)
  })
})

describe('signed texts', () => {
  test('a call signs its method, path, host, time and body, a line each', () => {
    const text = signedScanText({
      method: 'POST',
      pathWithQuery: '/scan/v1/report',
      hostId: 'h',
      timeMs: 5,
      bodySha256: 'e3',
    })
    expect(text).toBe('svc-scan-v1\nPOST\n/scan/v1/report\nh\n5\ne3')
    expect(rotationText('h', 'k')).toBe('h\nk')
  })
})

describe('words that agent, matcher and hub share', () => {
  test('an instance holds nothing of a tenant', () => {
    const fields: Record<keyof PackageInstance, true> = {
      system: true,
      release: true,
      name: true,
      version: true,
      arch: true,
      source: true,
      sourceVersion: true,
      module: true,
      vendor: true,
    }
    expect(Object.keys(fields).filter(name => /company|host|server/.test(name))).toEqual([])
  })

  test('a rule and an event have the names that are stored and sent', () => {
    const rule: Pick<Rule, 'vuln' | 'fixed'> = { vuln: 'CVE-2024-0001', fixed: '1.0-1' }
    const type: SecurityEvent['type'] = 'finding.opened'
    expect(JSON.stringify([rule, type])).toBe('[{"vuln":"CVE-2024-0001","fixed":"1.0-1"},"finding.opened"]')
  })
})
