// REST: /subnets and /ips (groups "Subnets" and "IPs").
import { Type } from '@sinclair/typebox'
import { list } from '../platform/http/list.ts'
import { Reply } from '../platform/http/reply.ts'
import { boolean, instant, integer, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { answer, answerList, listed, string } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { editorOf } from '../resources/editor.ts'
import { bodyOf } from '../resources/kind.ts'
import { answerOf, onePath, replyWith, resourceOf } from '../resources/kind-routes.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { parseForm } from '../resources/resource-form.ts'
import { showResponse } from '../resources/resource-response.ts'
import { presentSome } from '../resources/resource-show.ts'
import { allocate } from './allocate.ts'
import { freeIn } from './free-in-subnet.ts'
import { ipAddressKind } from './ip-address.ts'
import { ipHistory } from './ip-history.ts'
import { releaseAddress, reserveAddress } from './release-and-reserve.ts'
import { subnetServers } from './servers-of-subnet.ts'
import { mergeSubnets, splitSubnet } from './split-and-merge.ts'
import { subnetKind } from './subnet.ts'
import { subnetDetails, usageDetails } from './usage-details.ts'

const { view, manage } = subnetKind.info.permissions
const VIEW = [view]
const MANAGE = [manage]
const subnetOf = (context: RouteContext) => resourceOf(subnetKind, context)
const addressOf = (context: RouteContext) => resourceOf(ipAddressKind, context)
const ONE_SUBNET = onePath(subnetKind)
const ONE_ADDRESS = onePath(ipAddressKind)
const subnet = { tag: subnetKind.group, resource: subnetOf }
const address = { tag: ipAddressKind.group, resource: addressOf }
const shownSubnet = showResponse(subnetKind)
const shownAddress = showResponse(ipAddressKind)
const note = { note: optional(text(255)) }
const COUNT_MAX = 256
const COUNT_USUAL = 15
const TWO_IDS = ['3f2a7c1e-9b4d-4e8a-a1c5-6d7e8f901234', '3f2a7c1e-9b4d-4e8a-a1c5-6d7e8f901235']

const subnetRoutes: readonly Route[] = [
  route({
    ...subnet,
    method: 'GET',
    path: `${ONE_SUBNET}/usage`,
    summary: 'What is used of a subnet, range by range',
    permissions: VIEW,
    answer: answer(usageDetails),
    handle: async context => ({ data: await subnetDetails(context, context.resource) }),
  }),
  route({
    ...subnet,
    method: 'GET',
    path: `${ONE_SUBNET}/free`,
    summary: 'Free addresses of a subnet, or free blocks of a prefix length',
    permissions: VIEW,
    query: Type.Object({
      count: Type.Optional(integer(1, COUNT_MAX)),
      from: Type.Optional(oneOf(['first', 'last'])),
      prefix: Type.Optional(integer(0, 128)),
    }),
    answer: Type.Object({
      data: listed(string()),
      total_free: Type.Union([Type.Integer({ minimum: 0 }), Type.String()]),
    }),
    handle: context => {
      const { count = COUNT_USUAL, from, prefix } = context.query
      return freeIn(context, context.resource, { count, isFromLast: from === 'last', prefix })
    },
  }),
  list({
    path: `${ONE_SUBNET}/servers`,
    tag: subnetKind.group,
    summary: 'Servers that name a subnet, or of which an address lies in it',
    permissions: VIEW,
    resource: subnetOf,
    of: subnetServers,
    within: ({ resource }) => ({ subnet: resource.id }),
  }),
  route({
    ...subnet,
    method: 'POST',
    path: `${ONE_SUBNET}/split`,
    summary: 'Split a subnet into parts of one prefix length',
    permissions: MANAGE,
    status: 201,
    body: Type.Object({ prefix: integer(1, 128), first: optional(integer(1, COUNT_MAX)) }),
    answer: answerList(shownSubnet),
    async handle(context) {
      const { prefix, first = null } = context.body
      const rows = await splitSubnet(context, context.resource, prefix, first)
      return { data: await presentSome(subnetKind, context, rows) }
    },
  }),
  route({
    method: 'POST',
    path: '/subnets/merge',
    tag: subnetKind.group,
    summary: 'Merge subnets that are together exactly one block',
    permissions: MANAGE,
    body: Type.Object({ subnet_ids: Type.Array(uuid(), { minItems: 2, maxItems: COUNT_MAX, examples: [TWO_IDS] }) }),
    answer: answerOf(subnetKind),
    refusals: [409],
    async handle(context) {
      await refuseManaged(context, subnetKind.info.kind, context.body.subnet_ids)
      return replyWith(subnetKind, context, await mergeSubnets(context, context.body.subnet_ids))
    },
  }),
]

/** What allocations take besides the fields of an address. */
const allocation = Type.Object({
  subnet_id: uuid(),
  count: Type.Optional(integer(1, 64)),
  from: Type.Optional(oneOf(['first', 'last'])),
  contiguous: Type.Optional(boolean()),
  request_id: optional(text(64)),
  address: optional(text(64)),
})
const { address: _address, ...allocatedFields } = ipAddressKind.fields
const allocated = { fields: allocatedFields }

const addressRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/ips/allocate',
    tag: ipAddressKind.group,
    summary: 'Register the next free addresses of a subnet',
    permissions: MANAGE,
    status: 201,
    body: allocation,
    docBody: Type.Object({ ...bodyOf(allocated, true).properties, ...allocation.properties }),
    answer: answerList(shownAddress),
    otherResponses: { 200: answerList(shownAddress) },
    async handle(context) {
      const { subnet_id, count = 1, from, contiguous = false, request_id = null, address: wanted = null } = context.body
      const { shown, isRepeated } = await allocate({
        editor: editorOf(context),
        subnet_id,
        count: wanted === null ? count : 1,
        isFromLast: from === 'last',
        isContiguous: contiguous,
        address: wanted,
        requestId: request_id,
        values: await parseForm(allocated, 'create', context.body),
      })
      return isRepeated ? new Reply({ data: shown }, { status: 200 }) : { data: [...shown] }
    },
  }),
  route({
    ...address,
    method: 'POST',
    path: `${ONE_ADDRESS}/release`,
    summary: 'Release an address; its history stays',
    permissions: MANAGE,
    body: Type.Object(note),
    answer: answerOf(ipAddressKind),
    async handle(context) {
      await refuseManaged(context, ipAddressKind.info.kind, context.resource.id)
      const row = await releaseAddress(context, context.resource, context.body.note ?? null)
      return replyWith(ipAddressKind, context, row)
    },
  }),
  route({
    ...address,
    method: 'POST',
    path: `${ONE_ADDRESS}/reserve`,
    summary: 'Reserve an address until a time',
    permissions: MANAGE,
    body: Type.Object({ until: instant(), ...note }),
    answer: answerOf(ipAddressKind),
    async handle(context) {
      await refuseManaged(context, ipAddressKind.info.kind, context.resource.id)
      const row = await reserveAddress(context, context.resource, context.body.until, context.body.note ?? null)
      return replyWith(ipAddressKind, context, row)
    },
  }),
  list({
    path: `${ONE_ADDRESS}/history`,
    tag: ipAddressKind.group,
    summary: 'What happened to an address, newest first',
    permissions: VIEW,
    resource: addressOf,
    of: ipHistory,
    within: ({ resource }) => ({ id: resource.id, address: resource.address }),
  }),
]

export const networkRoutes: readonly Route[] = [...subnetRoutes, ...addressRoutes]
