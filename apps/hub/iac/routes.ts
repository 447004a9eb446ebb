// REST: /iac (document 1 "IaC requests"; resources.md §6).
import { Type } from '@sinclair/typebox'
import { conventionalPath } from '../../../core/iac/manifest-path.ts'
import { titleOfPlan } from '../../../core/iac/run-status.ts'
import { sentInChunks } from '../../http/http-response.ts'
import { FILE_BYTES_MAX } from '../files/files.ts'
import { runCollection } from '../manifest-runs/run-list.ts'
import { invalid, invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { list } from '../platform/http/list.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { boolean, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerList, answerPage, anyObject } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { attach, detach } from './attachments.ts'
import { keptDescription } from './description-html.ts'
import { exportKind, exportYaml, findKind, listKinds } from './export-manifests.ts'
import type { SentFile } from './manifest.ts'
import { manifestSchema } from './manifest-schema.ts'
import { countSubmission, refuseDisabledUpload } from './may-submit.ts'
import { planFiles } from './plan.ts'
import { presentRun } from './present-run.ts'
import { CONTENTS_BYTES_MAX, checkSizes, DESCRIPTION_MAX, MANIFESTS_MAX } from './run-limits.ts'
import {
  attachmentResponse,
  exportedManifest,
  kindResponse,
  runResponse,
  timelineEntry,
  validatedRun,
} from './run-response.ts'
import { cancelRun, findRun, ownRun, queueRun, replanRun, submitRun, viewRun } from './runs.ts'
import { timelineOf } from './timeline.ts'
import { manifestYaml } from './write-manifest-yaml.ts'

const TAG = 'IaC requests'
const VIEW = ['iac.view']
const SUBMIT = ['iac.submit']
const APPLY = ['iac.apply']
const MIB = 1024 * 1024
/** All manifests at their largest, with room for what JSON escapes. */
const BODY_BYTES_MAX = 16 * MIB
/** Base64 takes a third more. */
const ATTACHMENT_BODY_MAX = Math.ceil(FILE_BYTES_MAX / 3) * 4 + MIB

const manifests = listOf(Type.Object({ path: text(255), contents: text(CONTENTS_BYTES_MAX) }), MANIFESTS_MAX, 1)
/** Blank ones are none: the plan gives the title then (document 1). */
const about = {
  title: optional(text(255, 0)),
  description: optional(text(DESCRIPTION_MAX, 0)),
  apply: optional(boolean()),
}
const submission = Type.Object({ manifests, ...about })
const form = Type.Object({
  manifests: optional(manifests),
  kind: optional(text(64)),
  company: optional(text(255)),
  name: optional(text(255)),
  ensure: optional(oneOf(['present', 'absent'])),
  spec: optional(Type.Record(Type.String(), Type.Unknown())),
  ...about,
})

type FormBody = {
  readonly manifests?: readonly SentFile[] | null | undefined
  readonly kind?: string | null | undefined
  readonly company?: string | null | undefined
  readonly name?: string | null | undefined
  readonly ensure?: 'present' | 'absent' | null | undefined
  readonly spec?: unknown
}

/** The manifests of a form: those that it has, or the one that its fields make. Throws 422. */
function filesOfForm({ manifests: given, kind, company, name, ensure, spec }: FormBody): readonly SentFile[] {
  if (given != null) return checkSizes(given)
  if (kind == null || company == null || name == null) {
    const missing = Object.entries({ kind, company, name }).filter(([, value]) => value == null)
    throw invalid(Object.fromEntries(missing.map(([field]) => [field, words('required')])))
  }
  const contents = manifestYaml({ kind, company, name, ensure: ensure ?? undefined, spec: spec ?? undefined })
  if (Buffer.byteLength(contents) > CONTENTS_BYTES_MAX)
    throw invalidField('spec', 'length_max', { max: CONTENTS_BYTES_MAX })
  return [{ path: conventionalPath({ kind, company, name }), contents }]
}

const submitted = async (context: RouteContext): Promise<null> => {
  countSubmission(context)
  return null
}

const runs: readonly Route[] = [
  route({
    method: 'POST',
    path: '/iac/runs',
    tag: TAG,
    summary: 'Submit manifests: they are planned, and with apply and the permission applied',
    permissions: SUBMIT,
    status: 201,
    resource: async context => {
      await submitted(context)
      await refuseDisabledUpload(context)
      return null
    },
    bodyBytesMax: BODY_BYTES_MAX,
    body: submission,
    answer: answer(runResponse),
    async handle(context) {
      checkSizes(context.body.manifests)
      return { data: await presentRun(context.hub, await submitRun(context, context.body)) }
    },
  }),
  list({
    path: '/iac/runs',
    tag: TAG,
    summary: 'List runs, newest first',
    permissions: VIEW,
    of: runCollection,
  }),
  route({
    method: 'GET',
    path: '/iac/runs/:run',
    tag: TAG,
    summary: 'Show a run: with iac.view, and to its submitter',
    resource: viewRun,
    answer: answer(runResponse),
    handle: async ({ hub, resource }) => ({ data: await presentRun(hub, resource) }),
  }),
  route({
    method: 'POST',
    path: '/iac/runs/:run/apply',
    tag: TAG,
    summary: 'Apply a run in the background',
    permissions: APPLY,
    status: 202,
    resource: findRun,
    answer: answer(runResponse),
    handle: async context => ({
      data: await presentRun(context.hub, await queueRun(context, context.resource)),
    }),
  }),
  route({
    method: 'POST',
    path: '/iac/form',
    tag: TAG,
    summary: 'Submit one resource by its fields, or manifests; works where YAML is switched off too',
    permissions: SUBMIT,
    status: 201,
    resource: submitted,
    bodyBytesMax: BODY_BYTES_MAX,
    body: form,
    answer: answer(runResponse),
    async handle(context) {
      const { title, description, apply } = context.body
      const files = filesOfForm(context.body)
      const run = await submitRun(context, { manifests: files, title, description, apply })
      return { data: await presentRun(context.hub, run) }
    },
  }),
  route({
    method: 'POST',
    path: '/iac/validate',
    tag: TAG,
    summary: 'Plan manifests and store nothing',
    permissions: SUBMIT,
    resource: submitted,
    bodyBytesMax: BODY_BYTES_MAX,
    body: submission,
    answer: answer(validatedRun),
    async handle(context) {
      checkSizes(context.body.manifests)
      return { data: await validated(context, context.body) }
    },
  }),
]

/** A run as it would be. */
async function validated(
  context: RouteContext,
  body: {
    readonly manifests: readonly SentFile[]
    readonly title?: string | null | undefined
    readonly description?: string | null | undefined
  },
) {
  const { caller, hub, companyId } = context
  const plan = await planFiles(context, body.manifests)
  const title = body.title?.trim()
  return {
    title: title ? title : titleOfPlan(plan.items, plan.errors.length),
    status: plan.errors.length === 0 ? ('planned' as const) : ('invalid' as const),
    submitter: { id: caller.user.id, name: caller.user.name },
    company_id: caller.user.companyId ?? companyId,
    files_count: plan.files.length,
    kinds: plan.kinds,
    queued_at: null,
    applied_at: null,
    apply_error: null,
    cancelled_at: null,
    created_at: new Date(hub.now()),
    description: keptDescription(body.description),
    files: plan.files,
    attachments: [],
    items: plan.items.map(item => ({
      path: item.path,
      kind: item.kind,
      company: item.company,
      name: item.name,
      action: item.action,
      adopts: item.adopts,
      diff: item.diff,
      requires: item.requires,
      forbidden: item.forbidden,
      resource_id: item.resourceId,
      base_version: item.baseVersion,
      approvals: { required: 0, given: 0 },
      status: 'planned',
      error: null,
    })),
    approval_timeline: [],
    errors: plan.errors,
    untried: plan.untried,
    plan_stale: false,
  }
}

const kinds: readonly Route[] = [
  route({
    method: 'GET',
    path: '/iac/kinds',
    tag: TAG,
    summary: 'The kinds that manifests can have',
    permissions: VIEW,
    answer: answerList(kindResponse),
    handle: async context => ({ data: await listKinds(context) }),
  }),
  route({
    method: 'GET',
    path: '/iac/kinds/:kind/schema',
    tag: TAG,
    summary: 'The JSON Schema of the manifests of a kind; raw for Accept: application/schema+json',
    permissions: VIEW,
    pathParameters: { kind: Type.String({ examples: ['server'] }) },
    otherTypes: ['application/schema+json'],
    resource: async context => findKind(context),
    answer: answer(anyObject()),
    async handle({ resource, header }) {
      const schema = manifestSchema(resource)
      if (!(header('accept') ?? '').includes('application/schema+json')) return { data: schema }
      return raw(JSON.stringify(schema), 'application/schema+json')
    },
  }),
  route({
    method: 'GET',
    path: '/iac/export/:kind',
    tag: TAG,
    summary: 'Existing resources as manifests; all of them as YAML for Accept: application/yaml',
    permissions: VIEW,
    pathParameters: { kind: Type.String({ examples: ['server'] }) },
    otherTypes: ['application/yaml'],
    resource: async context => findKind(context),
    query: Type.Object({
      name: Type.Optional(text(255)),
      tag: Type.Optional(text(128)),
      origin: Type.Optional(oneOf(['manual', 'iac', 'import', 'discovered', 'agent'])),
      ...pageQuery,
    }),
    answer: answerPage(exportedManifest),
    async handle(context) {
      const { page: number, ...filter } = context.query
      if (/\byaml\b/.test(context.header('accept') ?? ''))
        return raw(await exportYaml(context, context.resource, filter), 'application/yaml; charset=utf-8', sentInChunks)
      const page = pageOf({ page: number })
      const { manifests, total } = await exportKind(context, context.resource, filter, page)
      return paged(context.url, page, total, manifests)
    },
  }),
]

/** A body of another media type: the pipeline sends a Response as it is, whatever the schema of the answer says. */
const raw = (body: string | ReadableStream<Uint8Array>, type: string, more = {}): never =>
  new Response(body, { headers: { ...more, 'Content-Type': type } }) as never

const acts: readonly Route[] = [
  route({
    method: 'GET',
    path: '/iac/runs/:run/timeline',
    tag: TAG,
    summary: 'What happened in a run',
    permissions: VIEW,
    resource: findRun,
    answer: answerList(timelineEntry),
    handle: async context => ({ data: await timelineOf(context, context.resource) }),
  }),
  route({
    method: 'POST',
    path: '/iac/runs/:run/attachments',
    tag: TAG,
    summary: 'Attach a file to a run',
    permissions: SUBMIT,
    status: 201,
    resource: ownRun,
    bodyBytesMax: ATTACHMENT_BODY_MAX,
    formBody: true,
    body: Type.Object({
      file_id: optional(uuid()),
      name: optional(text(255)),
      content_base64: optional(Type.String({ maxLength: ATTACHMENT_BODY_MAX })),
    }),
    answer: answer(attachmentResponse),
    handle: async context => ({ data: await attach(context, context.resource, context.body) }),
  }),
  route({
    method: 'DELETE',
    path: '/iac/runs/:run/attachments/:attachment',
    tag: TAG,
    summary: 'Remove an attachment',
    permissions: SUBMIT,
    resource: ownRun,
    handle: async context => {
      await detach(context, context.resource, context.params.attachment ?? '')
      return undefined
    },
  }),
  route({
    method: 'POST',
    path: '/iac/runs/:run/cancel',
    tag: TAG,
    summary: 'Withdraw a run',
    permissions: SUBMIT,
    resource: ownRun,
    answer: answer(runResponse),
    handle: async context => ({
      data: await presentRun(context.hub, await cancelRun(context, context.resource)),
    }),
  }),
  route({
    method: 'POST',
    path: '/iac/runs/:run/replan',
    tag: TAG,
    summary: 'Plan a run again, against what exists now',
    permissions: SUBMIT,
    resource: ownRun,
    answer: answer(runResponse),
    handle: async context => ({
      data: await presentRun(context.hub, await replanRun(context, context.resource)),
    }),
  }),
]

export const iacRoutes: readonly Route[] = [...runs, ...kinds, ...acts]
