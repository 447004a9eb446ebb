// Webhooks in manifests (resources.md §6). The secret of one that a manifest makes is read by rotating it.
import { Type } from '@sinclair/typebox'
import { and, eq, type SQL, sql } from 'drizzle-orm'
import { severities } from '../../../../core/alerting/rules/rule.ts'
import type { Unchecked } from '../../../../core/json-object.ts'
import { templateTypes } from '../../notifications/templates.ts'
import { callFault } from '../../notifications/webhook.ts'
import { webhooks } from '../../platform/db/schema-identity.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { boolean, listOf, oneOf, optional, text } from '../../platform/http/request-schema.ts'
import { toScope } from '../../scopes/scope.ts'
import { changeWebhook, createWebhook, deleteWebhook, webhookCollection } from '../../webhooks/webhooks.ts'
import type { Existing, ExportFilter, ManifestKind, NameFinder, Reading } from './manifest-kind.ts'
import { isNamed, namedRows } from './named-rows.ts'
import { namedScope, normalScope, scopeInput, scopeReferences, withServerNames } from './named-scope.ts'

const spec = Type.Object({
  name: optional(text(255)),
  url: text(2048),
  events: optional(listOf(oneOf(templateTypes), templateTypes.length)),
  min_severity: Type.Optional(oneOf(severities)),
  scope: Type.Optional(namedScope()),
  enabled: Type.Optional(boolean()),
})
const EVERYTHING = { all: true, servers: [], tags: [], environments: [], roles: [], datacenters: [] }
const DEFAULTS: Unchecked = { events: [], min_severity: 'info', scope: EVERYTHING, enabled: true }

const filtered = ({ companyId }: Reading, { tag, origin, ...named }: ExportFilter): SQL | undefined =>
  and(
    eq(webhooks.companyId, companyId),
    isNamed(webhooks.id, webhooks.name, named),
    tag === undefined ? undefined : sql`jsonb_exists(${webhooks.scope}->'tags', ${tag})`,
    origin === undefined || origin === 'manual' ? undefined : sql`false`,
  )

const sortedEvents = (events: unknown): string[] => (Array.isArray(events) ? events.map(String).sort() : [])

async function read(reading: Reading, rows: readonly (typeof webhooks.$inferSelect)[]): Promise<Existing[]> {
  // Stored scopes are whole; the column's type does not say so.
  const scopes = rows.map(row => toScope(row.scope))
  const named = await withServerNames(reading.db, reading.companyId, scopes)
  return rows.map((row, index) => ({
    id: row.id,
    name: row.name,
    version: 0,
    spec: {
      name: row.name,
      url: row.url,
      events: sortedEvents(row.events),
      min_severity: row.minSeverity,
      scope: named(scopes[index]!),
      enabled: row.enabled,
    },
  }))
}

type WebhookInput = Parameters<typeof createWebhook>[1]

const inputOf = (given: Unchecked, find: NameFinder): WebhookInput =>
  ({
    ...given,
    ...(given.scope === undefined ? {} : { scope: scopeInput(given.scope, find) }),
  }) as WebhookInput

export const webhookKind: ManifestKind = {
  kind: 'webhook',
  title: 'Webhooks',
  order: 5,
  resourceKind: 'webhook',
  permissions: { view: 'webhooks.view', manage: 'webhooks.manage' },
  dependsOn: ['server'],
  spec,
  defaults: DEFAULTS,
  secrets: ['secret'],
  isNameUnique: false,
  referencesOf: scopeReferences,
  normal: (given, find) => ({
    ...given,
    ...(given.events === undefined ? {} : { events: sortedEvents(given.events) }),
    ...(given.scope === undefined ? {} : { scope: normalScope(given.scope, find) }),
  }),
  faults: async ({ hub }, given, existing) => {
    const isSame = existing?.spec.url === given.url
    const fault = isSame ? null : await callFault(hub, String(given.url))
    return fault === null ? new Map<string, Words>() : new Map([['url', words(fault)]])
  },
  ...namedRows({
    table: webhooks,
    name: webhooks.name,
    ofCompany: companyId => eq(webhooks.companyId, companyId),
    filtered,
    read,
  }),
  create: async ({ context }, given, find) => (await createWebhook(context, inputOf(given, find))).row.id,
  update: async ({ context, tx, companyId }, { id }, changed, given, find) => {
    const row = await webhookCollection.find(tx.db, companyId, id)
    const input = inputOf(given, find)
    await changeWebhook(context, row, Object.fromEntries(Object.entries(input).filter(([name]) => changed.has(name))))
  },
  remove: async ({ context, tx, companyId }, { id }) =>
    deleteWebhook(context, await webhookCollection.find(tx.db, companyId, id)),
}
