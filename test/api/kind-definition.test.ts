// What follows from a definition without a database: bodies, columns, routes, manifests.
import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { getTableColumns } from 'drizzle-orm'
import { text as textColumn } from 'drizzle-orm/pg-core'
import { ApiError } from '../../apps/hub/platform/http/api-error.ts'
import { text } from '../../apps/hub/platform/http/request-schema.ts'
import {
  choiceField,
  compositeField,
  integerField,
  referencesField,
  secretField,
  textField,
  timeField,
} from '../../apps/hub/resources/field.ts'
import { defineKind } from '../../apps/hub/resources/kind.ts'
import { answerOf, onePath, runRoute, usualRoutes } from '../../apps/hub/resources/kind-routes.ts'
import { exportColumnsOf, specFields, specSchemaOf } from '../../apps/hub/resources/manifest-fields.ts'
import { emptyOf, parseForm, storedOf } from '../../apps/hub/resources/resource-form.ts'
import { RunFailed } from '../../apps/hub/resources/runs.ts'

const word = { en: 'gadget', vi: 'gadget' }
const gadget = defineKind({
  kind: 'gadget',
  title: { one: word, many: word },
  group: 'Gadgets',
  path: '/gadgets',
  parameter: 'gadget',
  table: 'gadgets',
  schemaName: 'Gadget',
  fields: {
    mode: choiceField(['on', 'off'], { fallback: 'on', filter: true }),
    size: integerField(1, 9, { required: true, sort: true }),
    until: timeField({}),
    label: textField(10, { immutable: true }),
    server_ids: referencesField('server', 5, {}),
    api_key: secretField(100, null),
    target: compositeField<{ readonly target_host: string | null; readonly target_port: string | null }>({
      value: Type.Object({ host: text(100), port: Type.Optional(text(5)) }),
      response: Type.Object({ host: Type.String(), port: Type.Union([Type.String(), Type.Null()]) }),
      nullable: true,
      columns: { target_host: textColumn('target_host'), target_port: textColumn('target_port') },
      store: value => {
        const given = (value ?? {}) as { host?: string; port?: string }
        return { target_host: given.host ?? null, target_port: given.port ?? null }
      },
      show: row => (row.target_host === null ? null : { host: row.target_host, port: row.target_port }),
    }),
  },
  limit: 10,
  permissions: { view: 'network.view', manage: 'network.manage' },
  iac: null,
  csv: null,
  acts: { check: { work: () => Promise.reject(new RunFailed('timeout')) } },
})

const faultsOf = async (act: Promise<unknown>): Promise<string[]> => {
  const error = await act.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof ApiError)) throw new Error('nothing was refused')
  return Object.keys(error.more.errors ?? {}).sort()
}
const seal = (secret: string) => `sealed ${secret.length}`

describe('a definition of a kind', () => {
  test('a body needs what is required, and every fault of it is named', async () => {
    expect(await faultsOf(parseForm(gadget, 'create', { mode: 'sideways' }))).toEqual(['mode', 'name', 'size'])
    expect(await faultsOf(parseForm(gadget, 'change', { size: null, until: 'soon' }))).toEqual(['size', 'until'])
    expect(await faultsOf(parseForm(gadget, 'change', { name: '' }))).toEqual(['name'])
    expect(await parseForm(gadget, 'change', { mode: null, label: '', unknown: 1 })).toEqual({
      mode: 'on',
      label: null,
    })
  })

  test('values become columns: a secret is sealed, a composite has several', () => {
    expect(storedOf(gadget, { api_key: 'abc', target: { host: 'a' } }, seal)).toEqual({
      api_key_sealed: 'sealed 3',
      target_host: 'a',
      target_port: null,
    })
    expect(storedOf(gadget, { until: '2026-01-31T12:00:00Z' }, seal).until).toEqual(new Date('2026-01-31T12:00:00Z'))
    expect(emptyOf(gadget, seal)).toMatchObject({ mode: 'on', server_ids: [], tags: [], api_key_sealed: null })
    expect(Object.keys(getTableColumns(gadget.table))).toEqual(
      expect.arrayContaining(['mode', 'api_key_sealed', 'target_host', 'owner_team_id', 'version']),
    )
  })

  test('routes, orders and references follow from the fields', () => {
    const routes = usualRoutes(gadget).map(({ method, path }) => `${method} ${path}`)
    const one = onePath(gadget)
    expect(routes).toEqual(['GET /gadgets', 'POST /gadgets', `GET ${one}`, `PATCH ${one}`, `DELETE ${one}`])
    expect(runRoute(gadget, 'check', { summary: 'Check' })).toMatchObject({ path: `${one}/check`, status: 202 })
    expect(Object.keys(gadget.sorts)).toContain('-size')
    expect(gadget.info.references).toContainEqual({
      field: 'server_ids',
      to: 'server',
      column: 'server_ids',
      isList: true,
    })
    expect(JSON.stringify(answerOf(gadget))).toContain('api_key_set')
  })

  test('a manifest names what it refers to, and holds no secret', () => {
    expect(specFields(gadget).map(([key]) => key)).toContain('servers')
    const schema = JSON.stringify(specSchemaOf(gadget))
    expect(schema).toContain('"owner_team"')
    expect(schema).not.toContain('api_key')
    expect(exportColumnsOf(gadget)).not.toContain('api_key')
  })
})
