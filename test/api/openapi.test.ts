import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { apiRoutes } from '../../apps/hub/routes.ts'
import { isObject } from '../../core/json-object.ts'
import { document, operations, resolved } from './answers.ts'

describe('the OpenAPI document', () => {
  test('a linter with its strictest rules finds nothing in it, and every example has the form beside it', async () => {
    const config = await createConfig({
      extends: ['recommended-strict'],
      // The contract has /notifications/channels/{channel} beside /notifications/{notification}/read.
      rules: { 'no-ambiguous-paths': 'off' },
    })
    const source = JSON.stringify(document)
    const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config })
    expect(problems.map(problem => `${problem.ruleId}: ${problem.message} at ${problem.location[0]?.pointer}`)).toEqual(
      [],
    )
  })

  test('it says of each group what it is', () => {
    const tags = document.tags as readonly { readonly name: string; readonly description: string }[]
    expect(tags.length).toBeGreaterThan(25)
    expect(tags.filter(({ name, description }) => description === name).map(({ name }) => name)).toEqual([])
  })

  test('it has every route, and nothing else', () => {
    const expected = apiRoutes.flatMap(route => {
      const path = route.path.replace(/:([a-z_]+)/g, '{$1}')
      const versioned = `${route.method} /api/v1${path}`
      return route.legacy ? [versioned, `${route.method} /api${path}`] : [versioned]
    })
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(expected.sort())
  })

  test('[HUB-008] every endpoint is there: 364 in 30 groups, and those of security', () => {
    const groups = readFileSync(join(import.meta.dir, 'endpoints.txt'), 'utf8')
      .split(/^# /m)
      .slice(1)
    const listed = groups.map(group =>
      group
        .split('\n')
        .slice(1)
        .filter(line => line !== ''),
    )
    expect([listed.length - 1, listed.slice(0, -1).flat().length]).toEqual([30, 364])
    const unnamed = (text: string): string => text.replace(/\{[a-z_]+\}/g, '{}')
    const there = new Set(operations.map(({ method, path }) => unnamed(`${method} ${path.replace('/api/v1', '')}`)))
    expect(listed.flat().filter(each => !there.has(unnamed(each)))).toEqual([])
  })

  test('[check 16.1] the 175 endpoints of resources stand there with answer and refusals, and none stands beside the 364', () => {
    const names =
      /^(Connections|Load-balancer devices|Proxies|SSL certificates|IaC requests|Approval inbox and workflows|Mobile app|DNS|Subnets|IPs|Option lists|System commands|System settings|Data export|Search and files)\n/
    const groups = readFileSync(join(import.meta.dir, 'endpoints.txt'), 'utf8').split(/^# /m)
    const rows = (group: string) => group.split('\n').filter(line => /^(GET|POST|PUT|PATCH|DELETE) /.test(line))
    // Of the queues these three are of the resources, the others stood before.
    const ofQueues = ['POST /queues/{queue}/pause', 'POST /queues/{queue}/resume', 'GET /queues/workers']
    const resources = [...groups.filter(group => names.test(group)).flatMap(rows), ...ofQueues]
    expect(resources).toHaveLength(175)
    const unnamed = (text: string): string => text.replace(/\{[a-z_]+\}/g, '{}')
    const byRow = new Map(
      operations.map(each => [unnamed(`${each.method} ${each.path.replace('/api/v1', '')}`), each.content]),
    )
    for (const row of resources) {
      const responses = byRow.get(unnamed(row))?.responses
      const statuses = isObject(responses) ? Object.keys(responses) : []
      const hasBody = /^(POST|PUT|PATCH)/.test(row)
      expect([row, statuses.some(status => status.startsWith('2'))]).toEqual([row, true])
      const refusals = ['401', '429', ...(row.includes('{') ? ['404'] : []), ...(hasBody ? ['403'] : [])]
      expect([row, refusals.filter(status => !statuses.includes(status))]).toEqual([row, []])
    }
    const listed = new Set(groups.slice(1).flatMap(rows).map(unnamed))
    const beside = [...byRow.keys()].filter(row => row.includes(' /') && !row.includes(' /api/') && !listed.has(row))
    // A rule is changed by PUT too, as the first document has it.
    expect(beside).toEqual(['PUT /monitoring/rules/{}'])
  })

  test('every operation says what it is for, what it needs, what it answers and how it refuses, with examples', () => {
    for (const { method, path, content } of operations) {
      const what = `${method} ${path}`
      for (const name of ['operationId', 'summary', 'description']) expect(typeof content[name], what).toBe('string')
      expect(content.security, what).toEqual([{ bearer: [] }])
      const parameters: unknown[] = Array.isArray(content.parameters) ? content.parameters : []
      for (const parameter of parameters.map(resolved)) {
        expect(typeof parameter.description, `${what} ${parameter.name}`).toBe('string')
        expect(parameter.example, `${what} ${parameter.name}`).toBeDefined()
      }
      const responses = isObject(content.responses) ? content.responses : {}
      expect(Object.keys(responses), what).toContain('401')
      expect(Object.keys(responses), what).toContain('429')
      for (const [status, reference] of Object.entries(responses)) {
        const shown = resolved(reference).content
        if (['204', '304', '416'].includes(status)) expect(shown, what).toBeUndefined()
        else expect(isObject(shown), `${what} ${status}`).toBe(true)
        const json = isObject(shown) ? shown['application/json'] : undefined
        if (isObject(json)) expect(json.example, `${what} ${status}`).toBeDefined()
      }
    }
  })

  test('the names of operations are unique, and words that generated clients can use', () => {
    const names = operations.map(({ content }) => String(content.operationId))
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]+$/)
  })
})
