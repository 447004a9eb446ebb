// One resource of any kind: its fields, what is wrong with it, what it is made of, what was last done with it.

import { auditRows } from '../../audit/audit-list.ts'
import { conditionsOf } from '../../resources/conditions.ts'
import type { Kind } from '../../resources/kind.ts'
import { pathsOf } from '../../resources/resource-paths.ts'
import { type Found, findRow } from '../../resources/resource-rows.ts'
import { presentOne } from '../../resources/resource-show.ts'
import { NAME_KEYS, namesOf } from './named-resources.ts'
import { fieldsOf, formFieldsOf, partsOf, shownKind } from './resource-fields.ts'
import type { NamedResource, ResourceChange, ResourceCondition, ResourceView } from './resource-pages.ts'
import type { View, ViewContext } from './view.ts'

const CHANGES_SHOWN = 20
/** Members that have a place of their own on the page. */
const APART = new Set([
  ...['id', 'company_id', 'version', 'origin', 'health', 'drifted', 'created_by', 'updated_by', 'created_at'],
  ...['updated_at', 'deleted_at', 'conditions', 'drift', 'last_run', 'last_runs', 'name', 'owner_team'],
])

const ms = (text: unknown): number => new Date(String(text)).getTime()

/** As JSON has them: a date is a text. */
const plain = (value: unknown): Record<string, unknown> => JSON.parse(JSON.stringify(value))

type Condition = { code: string; severity: ResourceCondition['severity']; message: string; since: string }

/** Those of the answer, which has them in English, in both languages. */
async function inBothLanguages({ hub, companyId }: ViewContext, kind: Kind, id: string, english: readonly Condition[]) {
  if (english.length === 0) return []
  const vi = (await conditionsOf(hub.database.db, kind.info, companyId, [id], 'vi')).get(id) ?? []
  const vietnamese = new Map(vi.map(({ code, message }) => [code, message]))
  return english.map(
    ({ code, severity, message, since }): ResourceCondition => ({
      ...{ code, severity, sinceMs: ms(since) },
      message: { en: message, vi: vietnamese.get(code) ?? message },
    }),
  )
}

async function changesOf({ hub, companyId, may }: ViewContext, kind: Kind, id: string) {
  if (!may('audit.view')) return null
  const subject = { subjectType: kind.info.kind, subjectId: id }
  const rows = await auditRows(hub.database.db, companyId, subject, { limit: CHANGES_SHOWN, offset: 0 })
  return rows.map(
    (row): ResourceChange => ({
      ...{ id: row.id, actor: row.actorName, action: row.action, fields: Object.keys(row.changes) },
      atMs: row.createdAt.getTime(),
    }),
  )
}

/** What the row names: by its fields, and what it is a part of. */
async function named(context: ViewContext, kind: Kind, row: Found, values: Readonly<Record<string, unknown>>) {
  const references = fieldsOf(kind).flatMap(({ name, to }) => {
    const value = values[name]
    if (to === null) return []
    return (Array.isArray(value) ? value : [value]).flatMap(id => (typeof id === 'string' ? { kind: to, id } : []))
  })
  const parentKind = kind.parent?.of.info.kind
  const parentId = kind.parent ? String((row as Found & Record<string, unknown>)[kind.parent.column]) : ''
  const of = parentKind === undefined ? [] : [{ kind: parentKind, id: parentId }]
  const names = await namesOf(context, [...references, ...of])
  return { names, parent: names.find(each => each.kind === parentKind && each.id === parentId) ?? null }
}

const ownerOf = ({ owner_id: id, owner_name: name }: Found): NamedResource[] =>
  id === null || name === null ? [] : [{ id, kind: 'team', name }]

type Run = { id: string; action: string; state: string; queued_at: string; error: string | null }

export const resourceView: View<ResourceView> = {
  permissions: [],
  optional: [...NAME_KEYS, 'audit.view'],
  params: ['kind', 'resource'],
  async make(context) {
    const { hub, companyId, may, param } = context
    const { db } = hub.database
    const kind = shownKind(context)
    const { info } = kind
    const mayManage = may(info.permissions.manage)
    const row = await findRow(kind, db, companyId, param('resource'), mayManage ? 'any' : 'kept')
    const shown = plain(await presentOne(kind, { hub, companyId, language: 'en' }, row))
    const fields = fieldsOf(kind)
    const own = new Set(fields.flatMap(({ name }) => [name, `${name}_set`]))
    const members = Object.entries(shown)
    const values = Object.fromEntries(members.filter(([name]) => own.has(name)))
    values.owner_team_id = row.owner_team_id
    const [{ names, parent }, paths, open, changes] = await Promise.all([
      named(context, kind, row, values),
      pathsOf(db, hub.kinds, companyId, info.kind, [row.id]),
      inBothLanguages(context, kind, row.id, shown.conditions as Condition[]),
      changesOf(context, kind, row.id),
    ])
    return {
      ...{ id: row.id, kind: info.kind, title: info.title, name: row.name, parent, version: row.version },
      ...{ status: row.status, origin: row.origin, isDeleted: row.deleted_at !== null },
      health: shown.health as ResourceView['health'],
      createdAtMs: row.created_at.getTime(),
      updatedAtMs: row.updated_at.getTime(),
      path: paths.get(row.id) ?? '',
      mayManage: mayManage && !kind.without.includes('change'),
      mayDelete: mayManage && !kind.without.includes('delete'),
      ...{ fields, form: formFieldsOf(kind), values, conditions: open, changes },
      // The owner is named in the answer of the API too, whoever may see teams.
      names: [...names, ...ownerOf(row)],
      derived: Object.fromEntries(members.filter(([name]) => !own.has(name) && !APART.has(name))),
      drift: row.drift,
      runs: (shown.last_runs as Run[]).map(({ id, action, state, queued_at, error }) => ({
        ...{ id, action, state, error, queuedAtMs: ms(queued_at) },
      })),
      acts: Object.entries(kind.buttons).flatMap(([act, key]) => (may(info.permissions[key]) ? [act] : [])),
      parts: partsOf(kind)
        .filter(part => may(part.info.permissions.view))
        .map(part => ({ kind: part.info.kind, title: part.info.title.many })),
    }
  },
}
