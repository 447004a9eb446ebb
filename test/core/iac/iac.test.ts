import { describe, expect, test } from 'bun:test'
import { applyOrder } from '../../../core/iac/apply-order.ts'
import { approvalOf, decideItem } from '../../../core/iac/items-to-apply.ts'
import { conventionalPath, isSlug, pathFaults, slugFrom } from '../../../core/iac/manifest-path.ts'
import { statusAfterApply, titleOfPlan } from '../../../core/iac/run-status.ts'
import { canonicalText, merged, specDiff, withReturnedDefaults } from '../../../core/iac/spec-diff.ts'

const web = { kind: 'server', company: 'acme', name: 'web-1' }

describe('paths of manifests', () => {
  const faulty = (path: string): string[] => pathFaults(path, web).map(fault => fault.part)

  test('[IAC-028] [IAC-029] a path of three parts says kind, company and name', () => {
    expect(faulty(conventionalPath(web))).toEqual([])
    expect(faulty('server/acme/web-1')).toEqual([])
    expect(faulty('check/other/db-1.yml')).toEqual(['kind', 'company', 'name'])
    expect(faulty('server/acme/web-1.yaml')).toEqual(['name'])
    expect(faulty('/server/acme.yml')).toEqual(['kind', 'company', 'name'])
  })

  test('[IAC-031] a path of fewer or more parts is not compared', () => {
    for (const path of ['web.yml', 'check/web.yml', 'env/check/other/web.yml', '/server/acme/x.yml'])
      expect(faulty(path)).toEqual([])
  })

  test('slugs are lower-case letters, digits and hyphens inside', () => {
    expect(['a', 'web-1', '1', 'a'.repeat(63)].every(isSlug)).toBe(true)
    expect(['', '-a', 'a-', 'A', 'a_b', 'a'.repeat(64), 'a\n'].some(isSlug)).toBe(false)
    expect([slugFrom('Web 1 (Đà Nẵng)'), slugFrom('…'), slugFrom('x'.repeat(80))]).toEqual([
      'web-1-a-na-ng',
      'resource',
      'x'.repeat(63),
    ])
  })
})

describe('differences', () => {
  test('fields are named with dots, and what a manifest does not name is not compared', () => {
    const current = {
      hostname: 'a',
      cpu_cores: 4,
      scope: { all: true, tags: ['x'] },
      target: { port: 1, proto: 'tcp' },
    }
    const desired = { hostname: 'b', scope: { all: true, tags: ['x', 'y'] }, target: { port: 2 } }
    expect(specDiff(current, desired)).toEqual([
      { field: 'hostname', old: 'a', new: 'b' },
      { field: 'scope.tags', old: ['x'], new: ['x', 'y'] },
      { field: 'target.port', old: 1, new: 2 },
    ])
    expect(specDiff(current, { cpu_cores: 4 })).toEqual([])
    expect(specDiff({}, { environment: null })).toEqual([])
    const matchers = { matchers: { mount: '/', device: 'sda' } }
    expect(specDiff(matchers, { matchers: { mount: '/' } })).toEqual([])
    expect(specDiff(matchers, { matchers: { mount: '/' } }, { matchers: [] })).toHaveLength(1)
    expect(merged(matchers, { matchers: { mount: '/' } }, { matchers: [] })).toEqual({ matchers: { mount: '/' } })
  })

  test('a whole list is compared by its key: new, changed and missing items', () => {
    const lists = { records: ['name', 'type'] }
    const current = {
      records: [
        { name: 'a', type: 'A', ttl: 1 },
        { name: 'b', type: 'A', ttl: 1 },
      ],
    }
    const desired = {
      records: [
        { name: 'c', type: 'A' },
        { name: 'a', type: 'A', ttl: 2 },
      ],
    }
    expect(specDiff(current, desired, lists)).toEqual([
      { field: 'records.c A', old: null, new: { name: 'c', type: 'A' } },
      { field: 'records.a A.ttl', old: 1, new: 2 },
      { field: 'records.b A', old: { name: 'b', type: 'A', ttl: 1 }, new: null },
    ])
    expect(specDiff(current, { records: [...current.records].reverse() }, lists)).toEqual([])
  })

  test('a field that was applied and is absent now goes back to its default', () => {
    const defaults = { role: null, status: 'active' }
    expect(withReturnedDefaults({ hostname: 'a' }, { hostname: 'x', role: 'web' }, defaults)).toEqual({
      hostname: 'a',
      role: null,
    })
    expect(withReturnedDefaults({ role: 'db' }, null, defaults)).toEqual({ role: 'db' })
    const probe = { by: 'none', timeout: 5 }
    expect(withReturnedDefaults({ probe: { by: 'hub' } }, { probe: { by: 'hub', timeout: 9 } }, { probe })).toEqual({
      probe: { by: 'hub', timeout: 5 },
    })
    expect(withReturnedDefaults({ probe: null }, { probe: { by: 'hub' } }, { probe })).toEqual({ probe: null })
  })

  test('values are the same whatever the order of their members', () => {
    expect(canonicalText({ b: [1, { d: null, c: undefined }], a: 'x' })).toBe('{"a":"x","b":[1,{"d":null}]}')
    expect(merged({ a: { b: 1, c: 2 }, d: [1] }, { a: { c: 3 }, d: [] })).toEqual({ a: { b: 1, c: 3 }, d: [] })
  })
})

describe('the order of items', () => {
  const item = (path: string, kindOrder: number, ...refersTo: string[]) => ({ path, kindOrder, refersTo })

  test('[RES-132] what is referred to comes first, then the order of kinds, then the path', () => {
    const items = [item('check', 5, 'server'), item('b', 3), item('server', 3, 'subnet'), item('subnet', 2)]
    expect(applyOrder(items)).toEqual({ paths: ['subnet', 'b', 'server', 'check'] })
    expect(applyOrder(items.toReversed())).toEqual({ paths: ['subnet', 'b', 'server', 'check'] })
    expect(applyOrder([item('a', 1, 'z'), item('z', 9)])).toEqual({ paths: ['z', 'a'] })
  })

  test('[RES-134] a cycle is named, from and to the item where it begins', () => {
    const order = applyOrder([item('a', 1, 'b'), item('b', 1, 'c'), item('c', 1, 'b')])
    expect(order).toEqual({ cycle: ['b', 'c', 'b'] })
    expect(applyOrder([item('a', 1, 'a')])).toEqual({ cycle: ['a', 'a'] })
  })
})

describe('runs', () => {
  const statuses = (...list: ('planned' | 'applied' | 'skipped' | 'failed')[]) => list.map(status => ({ status }))

  test('[IAC-015] all applied, some, or none', () => {
    expect(statusAfterApply(statuses('applied', 'applied'))).toBe('applied')
    expect(statusAfterApply(statuses('applied', 'planned'))).toBe('partially-applied')
    expect(statusAfterApply(statuses('failed', 'skipped'))).toBe('planned')
  })

  test('[IAC-016] [RES-139] an apply takes what is approved, and failed and skipped items once more', () => {
    expect(decideItem('applied', 'create', 'approved')).toBe('leave')
    expect(decideItem('failed', 'create', 'free')).toBe('apply')
    expect(decideItem('skipped', 'update', 'approved')).toBe('apply')
    expect(decideItem('planned', 'update', 'pending')).toBe('wait')
    expect(decideItem('planned', 'delete', 'refused')).toBe('skip')
    expect(decideItem('planned', 'none', 'free')).toBe('apply')
    expect([approvalOf([]), approvalOf(['approved']), approvalOf(['approved', 'pending'])]).toEqual([
      'free',
      'approved',
      'pending',
    ])
    for (const state of ['rejected', 'expired', 'cancelled'] as const)
      expect(approvalOf(['pending', state])).toBe('refused')
  })

  test('[IAC-006] a blank title is generated from the plan', () => {
    const create = { action: 'create', kind: 'server', name: 'web-1' } as const
    const update = { action: 'update', kind: 'check', name: 'c' } as const
    expect(titleOfPlan([create, update, update], 0)).toBe('Create server web-1, Update 2')
    expect(titleOfPlan([{ ...create, action: 'none' }], 0)).toBe('No changes')
    expect(titleOfPlan([], 2)).toBe('Invalid: 2 errors')
  })
})
