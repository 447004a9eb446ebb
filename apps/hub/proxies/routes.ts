// REST: /proxies and their sites (group "Proxies").
import { Type } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { type ConfigFormat, configFormats } from '../../../core/proxies/proxy-config.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { Words } from '../platform/http/api-texts.ts'
import { isKnown, notModified, Reply, versionTag } from '../platform/http/reply.ts'
import { faultsError, listOf, oneOf, text } from '../platform/http/request-schema.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { refuseTarget } from '../platform/outbound-guard.ts'
import { takeAct } from '../resources/act-rate.ts'
import { csvOptions, csvReply } from '../resources/csv-import.ts'
import { editorOf } from '../resources/editor.ts'
import { bodyOf, type Kind } from '../resources/kind.ts'
import { answerOf, onePath, replyWith, resourceOf } from '../resources/kind-routes.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { parseForm, under } from '../resources/resource-form.ts'
import { runResponse } from '../resources/resource-response.ts'
import { findRow } from '../resources/resource-rows.ts'
import { presentOne } from '../resources/resource-show.ts'
import { presentRun, startRun } from '../resources/runs.ts'
import { insertResource, updateResource } from '../resources/write-resource.ts'
import { proxyKind, refuseForward } from './proxy.ts'
import { parsePlace } from './proxy-acts.ts'
import { proxySiteKind } from './proxy-site.ts'
import { formatOf, frozenConfig } from './revisions.ts'

const TAG = proxyKind.group
const VIEW = [proxyKind.info.permissions.view]
const MANAGE = [proxyKind.info.permissions.manage]
const ONE = onePath(proxyKind)
const SITES_WITH_PROXY = 500
const BODY_BYTES_MAX = 8 * 1024 * 1024

const proxyOf = (context: RouteContext) => resourceOf(proxyKind, context)

/** The sites of a body, each as it is kept. Throws 422 with the place of each fault. */
async function parseSites(sites: readonly unknown[]): Promise<Unchecked[]> {
  const faults = new Map<string, Words>()
  const parsed: Unchecked[] = []
  for (const [index, site] of sites.entries())
    await under(faults, `sites.${index}`, async () => parsed.push(await parseForm(proxySiteKind, 'create', site)))
  if (faults.size > 0) throw faultsError(faults)
  return parsed
}

const createProxy = route({
  method: 'POST',
  path: proxyKind.info.path,
  tag: TAG,
  summary: 'Create a proxy, a reverse one with its sites',
  permissions: MANAGE,
  status: 201,
  body: Type.Object({ sites: Type.Optional(Type.Array(Type.Unknown(), { maxItems: SITES_WITH_PROXY })) }),
  docBody: Type.Object({
    ...bodyOf(proxyKind, true).properties,
    sites: Type.Optional(listOf(Type.Object(bodyOf(proxySiteKind, true).properties), SITES_WITH_PROXY)),
  }),
  bodyBytesMax: BODY_BYTES_MAX,
  ...csvOptions(proxyKind),
  answer: answerOf(proxyKind),
  async handle(context) {
    const reply = await csvReply(context, proxyKind as Kind, null)
    if (reply) return reply
    const { sites = [], ...body } = context.body as Unchecked & { readonly sites?: readonly unknown[] }
    const values = await parseForm(proxyKind, 'create', body)
    if (sites.length > 0) refuseForward({ mode: String(values.mode ?? 'reverse') }, 'sites')
    const parsed = await parseSites(sites)
    const editor = editorOf(context)
    const id = await inTransaction(context.hub.database.db, async tx => {
      const proxy = await insertResource(tx, proxyKind, editor, values)
      for (const [index, site] of parsed.entries()) {
        const faults = new Map<string, Words>()
        await under(faults, `sites.${index}`, () =>
          insertResource(tx, proxySiteKind, editor, site, { parentId: proxy.id }),
        )
        if (faults.size > 0) throw faultsError(faults)
      }
      return proxy.id
    })
    const made = await findRow(proxyKind, context.hub.database.db, context.companyId, id)
    return replyWith(proxyKind, context, made, { headers: { Location: `${context.url.pathname}/${id}` } })
  },
})

/** The newest revision in a format, with a tag of its own: servers ask for it again and again. */
async function configOf(context: RouteContext, proxy: { id: string; company_id: string }, format: ConfigFormat) {
  const frozen = await frozenConfig(context.hub.database.db, proxy)
  if (frozen === null) return null
  const { texts, revision, created_at } = frozen
  return { format, revision, ...texts[format], created_at }
}

const showProxy = route({
  method: 'GET',
  path: ONE,
  tag: TAG,
  summary: 'Show a proxy, and the newest revision of its configuration',
  permissions: VIEW,
  query: Type.Object({
    include: Type.Optional(oneOf(['config'])),
    format: Type.Optional(oneOf(configFormats)),
  }),
  resource: proxyOf,
  answer: answerOf(proxyKind),
  otherResponses: { 304: null },
  async handle(context) {
    const { resource: proxy, query } = context
    const { include, format = formatOf(proxy) } = query
    if (include !== undefined) refuseForward(proxy, 'include')
    const config = include === undefined ? undefined : await configOf(context, proxy, format)
    const tag = config ? `"${config.sha256}"` : versionTag(proxy)
    if (isKnown(context, tag)) return notModified(tag)
    const shown = await presentOne(proxyKind, context, proxy)
    return new Reply({ data: config === undefined ? shown : { ...shown, config } }, { headers: { ETag: tag } })
  },
})

/** Sets whether a proxy is enabled; one that is so already stays as it is. */
const enableRoute = (action: 'enable' | 'disable', summary: string): Route =>
  route({
    method: 'POST',
    path: `${ONE}/${action}`,
    tag: TAG,
    summary,
    permissions: MANAGE,
    resource: proxyOf,
    answer: answerOf(proxyKind),
    async handle(context) {
      const values = { enabled: action === 'enable' }
      await refuseManaged(context, proxyKind.info.kind, context.resource.id)
      const row = await inTransaction(context.hub.database.db, tx =>
        updateResource(tx, proxyKind, editorOf(context), context.resource.id, values, { action }),
      )
      return replyWith(proxyKind, context, row)
    },
  })

/** Starts a run of an act, or answers the one under way. */
async function started(context: RouteContext, proxy: Awaited<ReturnType<typeof proxyOf>>, action: string, input = {}) {
  takeAct(context.hub, context.companyId)
  const run = await inTransaction(context.hub.database.db, tx =>
    startRun(tx, editorOf(context), proxyKind, proxy, action, input),
  )
  return { data: presentRun(run) }
}

const testProxy = route({
  method: 'POST',
  path: `${ONE}/test`,
  tag: TAG,
  summary: 'Look at every site of a reverse proxy, or reach a place through a forward one',
  permissions: MANAGE,
  resource: proxyOf,
  status: 202,
  body: Type.Object({ target: Type.Optional(text(300)) }),
  answer: answer(runResponse),
  async handle(context) {
    const { resource: proxy, hub } = context
    const { target } = isObject(context.body) ? context.body : {}
    if (proxy.mode === 'reverse' || target === undefined) return started(context, proxy, 'test')
    const place = parsePlace(target)
    if (place === null) throw invalidField('target', 'proxy_target')
    await refuseTarget(hub.config, 'target', place.host)
    return started(context, proxy, 'test', { target })
  },
})

const reloadProxy = route({
  method: 'POST',
  path: `${ONE}/reload`,
  tag: TAG,
  summary: 'Freeze the configuration of a reverse proxy as a revision to be pulled, and look at its sites',
  permissions: MANAGE,
  resource: proxyOf,
  status: 202,
  answer: answer(runResponse),
  async handle(context) {
    if (context.resource.mode === 'forward') throw invalidField('mode', 'proxy_reload')
    return started(context, context.resource, 'reload')
  },
})

export const proxyRoutes: readonly Route[] = [
  createProxy,
  showProxy,
  enableRoute('enable', 'Enable a proxy'),
  enableRoute('disable', 'Disable a proxy; nothing goes through it and nothing probes it'),
  testProxy,
  reloadProxy,
]
