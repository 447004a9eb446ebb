// REST: /options (group "Option lists").
import { Type } from '@sinclair/typebox'
import { Reply } from '../platform/http/reply.ts'
import { boolean, flag, flagOf, listOf, oneOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import { amount, answer, answerList, listed, named, string } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { expectedOf } from '../resources/kind-routes.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import {
  addItem,
  allLists,
  changeItem,
  ITEMS_MAX,
  type Item,
  itemFields,
  itemMembers,
  itemsOf,
  listOfItem,
  listOfPath,
  orderItems,
  removeItem,
} from './option-items.ts'
import { optionListId, optionLists } from './option-lists.ts'

const TAG = 'Option lists'
const VIEW = ['options.view']
const MANAGE = ['options.manage']
const pathParameters = { list: oneOf(Object.keys(optionLists)) }
const resource = async (context: Parameters<typeof listOfPath>[0]) => listOfPath(context)
const itemResource = async (context: Parameters<typeof listOfPath>[0]) => listOfItem(context)

/** The answer of one item, with its ETag. */
const tagged = (
  data: Item,
  more: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
) => new Reply({ data }, { ...more, headers: { ETag: `"${data.version}"`, ...more.headers } })
const itemResponse = named('OptionItem', itemMembers)

/** The list of a path, for a change of it. Throws 422 while manifests alone change it. */
async function refuseLocked(context: RouteContext & { readonly resource: string }): Promise<void> {
  await refuseManaged(context, 'option_list', optionListId(context.companyId, context.resource))
}

export const optionRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/options',
    tag: TAG,
    summary: 'All option lists',
    permissions: VIEW,
    answer: answerList(
      named('OptionList', {
        list: string(),
        title: string(),
        strict: Type.Boolean(),
        used_by: listed(string()),
        items_count: amount(),
      }),
    ),
    handle: async context => ({ data: await allLists(context) }),
  }),
  route({
    method: 'GET',
    path: '/options/:list',
    tag: TAG,
    summary: 'The items of a list by position',
    permissions: VIEW,
    pathParameters,
    resource,
    query: Type.Object({ enabled: flag(), include: Type.Optional(oneOf(['unlisted'])) }),
    answer: answerList(itemResponse),
    handle: async context => ({
      data: await itemsOf(
        context,
        context.resource,
        flagOf(context.query.enabled),
        context.query.include === 'unlisted',
      ),
    }),
  }),
  route({
    method: 'POST',
    path: '/options/:list/items',
    tag: TAG,
    summary: 'Add an item',
    permissions: MANAGE,
    pathParameters,
    resource,
    status: 201,
    body: Type.Object({ value: text(128), ...itemFields }),
    answer: answer(itemResponse),
    async handle(context) {
      await refuseLocked(context)
      const data = await addItem(context, context.resource, context.body)
      const location = `/api/v1/options/${context.resource}/items/${data.id}`
      return tagged(data, { status: 201, headers: { Location: location } })
    },
  }),
  route({
    method: 'PATCH',
    path: '/options/:list/items/:item',
    tag: TAG,
    summary: 'Change an item; rename_uses rewrites every use of its value',
    permissions: MANAGE,
    pathParameters,
    resource: itemResource,
    body: Type.Object({
      value: Type.Optional(text(128)),
      ...itemFields,
      rename_uses: Type.Optional(boolean()),
      version: optional(Type.Integer({ minimum: 1 })),
    }),
    refusals: [409, 412],
    answer: answer(named('OptionItemRenamed', { ...itemMembers, renamed: amount() })),
    async handle(context) {
      await refuseLocked(context)
      const { version, ...input } = context.body
      const expected = expectedOf(context, { version })
      return tagged(await changeItem(context, context.resource, context.params.item ?? '', input, expected))
    },
  }),
  route({
    method: 'DELETE',
    path: '/options/:list/items/:item',
    tag: TAG,
    summary: 'Remove an item; replace_with rewrites its uses first',
    permissions: MANAGE,
    pathParameters,
    resource: itemResource,
    query: Type.Object({ replace_with: Type.Optional(uuid()) }),
    refusals: [412],
    async handle(context) {
      await refuseLocked(context)
      const { resource, params, query } = context
      await removeItem(context, resource, params.item ?? '', query.replace_with, expectedOf(context))
      return undefined
    },
  }),
  route({
    method: 'PUT',
    path: '/options/:list/order',
    tag: TAG,
    summary: 'Order the items of a list, and say whether it is strict',
    permissions: MANAGE,
    pathParameters,
    resource,
    body: Type.Object({ order: listOf(uuid(), ITEMS_MAX), strict: Type.Optional(boolean()) }),
    answer: answerList(itemResponse),
    async handle(context) {
      await refuseLocked(context)
      await orderItems(context, context.resource, context.body.order, context.body.strict)
      return { data: await itemsOf(context, context.resource, undefined, false) }
    },
  }),
]
