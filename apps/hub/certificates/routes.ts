// REST: /certificates (group "SSL certificates").
import { Type } from '@sinclair/typebox'
import { isObject } from '../../../core/json-object.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { list } from '../platform/http/list.ts'
import { Reply } from '../platform/http/reply.ts'
import { instant, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, named, nullable } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { takeAct } from '../resources/act-rate.ts'
import { editorOf } from '../resources/editor.ts'
import { answerOf, onePath, replyWith, resourceOf, runRoute, usualRoutes } from '../resources/kind-routes.ts'
import { runResponse, showResponse } from '../resources/resource-response.ts'
import { presentOne } from '../resources/resource-show.ts'
import { presentRun } from '../resources/runs.ts'
import { addDeployment, removeDeployment } from './add-and-remove-deployments.ts'
import { certificateKind } from './certificate.ts'
import { leafDer } from './chain.ts'
import { deploymentCollection, deploymentResponse } from './deployment-list.ts'
import { endpointMembers } from './endpoint.ts'
import { renewCertificate, revokeCertificate } from './renew-and-revoke.ts'
import { uploadCertificate } from './upload.ts'
import { revocationReasons } from './versions.ts'

const TAG = 'SSL certificates'
const VIEW = ['certificates.view']
const MANAGE = ['certificates.manage']
const PATH = certificateKind.info.path
const ONE = onePath(certificateKind)
const UPLOAD_BYTES_MAX = 256 * 1024
const NOTE_MAX = 1000

const certificateOf = (context: RouteContext) => resourceOf(certificateKind, context)

const uploadedResponse = named('UploadedCertificate', {
  ...showResponse(certificateKind).properties,
  key_matches: nullable(Type.Boolean()),
})

const upload = route({
  method: 'POST',
  path: `${PATH}/upload`,
  tag: TAG,
  summary: 'Upload a chain: a new certificate, or a new version of one with the same names',
  permissions: MANAGE,
  status: 201,
  body: Type.Object({
    pem: text(65_536),
    private_key: optional(text(65_536)),
    certificate_id: optional(uuid()),
    name: optional(text(255)),
  }),
  bodyBytesMax: UPLOAD_BYTES_MAX,
  answer: answer(uploadedResponse),
  otherResponses: { 200: answer(uploadedResponse) },
  async handle(context) {
    const { row, isNew, keyMatches } = await inTransaction(context.hub.database.db, tx =>
      uploadCertificate(tx, editorOf(context), context.body),
    )
    const shown = await presentOne(certificateKind, context, row)
    return new Reply({ data: { ...shown, key_matches: keyMatches } }, { status: isNew ? 201 : 200 })
  },
})

const renew = route({
  method: 'POST',
  path: `${ONE}/renew`,
  tag: TAG,
  summary: 'Ask for a renewal, and watch until every deployment serves it',
  permissions: MANAGE,
  resource: certificateOf,
  status: 202,
  body: Type.Object({ due_at: optional(instant()), note: optional(text(NOTE_MAX)) }),
  answer: answer(runResponse),
  async handle(context) {
    const { hub, resource, companyId, body } = context
    const dueAt = body.due_at ? new Date(body.due_at) : null
    if (dueAt && dueAt.getTime() <= hub.now()) throw invalidField('due_at', 'future')
    takeAct(hub, companyId)
    const asked = { dueAt, note: body.note || null }
    const run = await inTransaction(hub.database.db, tx => renewCertificate(tx, editorOf(context), resource.id, asked))
    return { data: presentRun(run) }
  },
})

const revoke = route({
  method: 'POST',
  path: `${ONE}/revoke`,
  tag: TAG,
  summary: 'Call the current version revoked; no authority is asked',
  permissions: MANAGE,
  resource: certificateOf,
  body: Type.Object({ reason: oneOf(revocationReasons), note: optional(text(NOTE_MAX)) }),
  answer: answerOf(certificateKind),
  async handle(context) {
    const { hub, resource, body } = context
    const row = await inTransaction(hub.database.db, tx =>
      revokeCertificate(tx, editorOf(context), resource.id, { reason: body.reason, note: body.note || null }),
    )
    return replyWith(certificateKind, context, row)
  },
})

const chain = route({
  method: 'GET',
  path: `${ONE}/chain`,
  tag: TAG,
  summary: 'The chain as PEM, or the leaf as DER; never a key',
  permissions: VIEW,
  query: Type.Object({ format: Type.Optional(oneOf(['pem', 'der'])) }),
  resource: certificateOf,
  answer: Type.Unsafe<Response>({ type: 'string' }),
  answerType: 'application/x-pem-file',
  otherTypes: ['application/pkix-cert'],
  async handle({ resource: { pem, id }, query: { format = 'pem' } }) {
    if (pem === null) throw notFound()
    const [content, type, ending] =
      format === 'pem' ? [pem, 'application/x-pem-file', 'pem'] : [leafDer(pem), 'application/pkix-cert', 'der']
    return new Response(content, {
      headers: {
        'Content-Type': type,
        'Content-Disposition': `attachment; filename="${id}.${ending}"`,
        'X-Content-Type-Options': 'nosniff',
      },
    })
  },
})

const deployments = list({
  path: `${ONE}/deployments`,
  tag: TAG,
  summary: 'List where a certificate is served',
  permissions: VIEW,
  of: deploymentCollection,
  isFiltered: true,
  resource: certificateOf,
  within: ({ resource }) => ({ certificate_id: resource.id }),
})

const deploy = route({
  method: 'POST',
  path: `${ONE}/deployments`,
  tag: TAG,
  summary: 'Say where a certificate is served; the place is watched from then on',
  permissions: MANAGE,
  resource: certificateOf,
  status: 201,
  body: Type.Object({
    kind: oneOf(['endpoint', 'server']),
    ...endpointMembers,
    host: optional(endpointMembers.host),
    server_id: optional(uuid()),
  }),
  answer: answer(deploymentResponse),
  async handle(context) {
    const { hub, companyId, resource, body } = context
    const id = await inTransaction(hub.database.db, tx => addDeployment(tx, editorOf(context), resource, body))
    const row = await deploymentCollection.find(hub.database.db, companyId, id)
    return { data: deploymentCollection.present(row, context) }
  },
})

const undeploy = route({
  method: 'DELETE',
  path: `${ONE}/deployments/:deployment`,
  tag: TAG,
  summary: 'Watch a place no longer',
  permissions: MANAGE,
  resource: async context => {
    const certificate = await certificateOf(context)
    const { db } = context.hub.database
    const { deployment } = await deploymentCollection.find(db, context.companyId, context.params.deployment ?? '')
    if (deployment.certificateId !== certificate.id) throw notFound()
    return { certificate, deployment }
  },
  async handle(context) {
    const { certificate, deployment } = context.resource
    await inTransaction(context.hub.database.db, tx =>
      removeDeployment(tx, editorOf(context), certificate, deployment.id),
    )
    return undefined
  },
})

/** A PATCH that sends a chain would renew in silence what another act is for. */
const withoutPem = (change: Route): Route => ({
  ...change,
  docBody: change.docBody && Type.Omit(change.docBody, ['pem']),
  run: (context, readBody) =>
    change.run(context, async code => {
      const body = await readBody(code)
      if (isObject(body) && body.pem !== undefined && body.pem !== null) throw invalidField('pem', 'certificate_upload')
      return body
    }),
})

export const certificateRoutes: readonly Route[] = [
  ...usualRoutes(certificateKind)
    .filter(({ method }) => method === 'PATCH')
    .map(withoutPem),
  upload,
  renew,
  revoke,
  chain,
  runRoute(certificateKind, 'check', { summary: 'Look at every deployment now', permission: 'certificates.view' }),
  deployments,
  deploy,
  undeploy,
]
