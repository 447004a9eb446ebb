// REST: /search (group "Search and files").
import { Type } from '@sinclair/typebox'
import { paged, pageOf } from '../platform/http/paging.ts'
import { integer, oneOf, text } from '../platform/http/request-schema.ts'
import { answerPage } from '../platform/http/response-schema.ts'
import { type Route, route } from '../platform/http/route.ts'
import { healths } from '../resources/kind.ts'
import { hitResponse, search } from './search.ts'

const page = answerPage(hitResponse)
const meta = Type.Object({ ...page.properties.meta.properties, capped: Type.Boolean() }, { $id: 'SearchMeta' })

export const searchRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/search',
    tag: 'Search and files',
    summary: 'Find anything that the caller may view',
    query: Type.Object({
      q: text(100),
      kinds: Type.Optional(Type.String({ maxLength: 500, examples: ['server,subnet'] })),
      tag: Type.Optional(Type.Array(text(128), { maxItems: 50 })),
      health: Type.Optional(oneOf(healths)),
      page: Type.Optional(integer(1, 20)),
    }),
    answer: Type.Object({ ...page.properties, meta }),
    async handle(context) {
      const { rows, total, isCapped } = await search(context, context.query)
      const answer = paged(context.url, pageOf(context.query), total, rows)
      return { ...answer, meta: { ...answer.meta, capped: isCapped } }
    },
  }),
]
