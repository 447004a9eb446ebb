// GET /web/saved-views, PUT and DELETE /web/saved-views/{id}: of the web interface alone, outside the API.
import { Type } from '@sinclair/typebox'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid, oneOf, text } from '../../platform/http/request-schema.ts'
import { type Route, type RouteContext, route } from '../../platform/http/route.ts'
import { savedPages, VIEW_NAME_CHARS_MAX, VIEW_QUERY_CHARS_MAX } from '../address/saved-view.ts'
import { deleteSavedView, putSavedView, savedViewResponse, savedViewsOf } from './saved-views.ts'

const TAG = 'Web interface'
/** Without it there is no page to keep. */
const SEE = ['monitoring.view']

function idOfPath({ params }: RouteContext): string {
  const { view = '' } = params
  if (!isUuid(view)) throw notFound()
  return view.toLowerCase()
}

export const savedViewRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/saved-views',
    tag: TAG,
    summary: 'List saved views',
    permissions: SEE,
    answer: Type.Object({ views: Type.Array(savedViewResponse) }),
    handle: async context => ({ views: await savedViewsOf(context) }),
  }),
  route({
    method: 'PUT',
    path: '/saved-views/:view',
    tag: TAG,
    summary: 'Save a view',
    permissions: SEE,
    body: Type.Object({
      page: oneOf(savedPages),
      name: text(VIEW_NAME_CHARS_MAX),
      query: text(2 * VIEW_QUERY_CHARS_MAX, 0),
      shared: Type.Boolean(),
    }),
    answer: savedViewResponse,
    resource: async context => idOfPath(context),
    handle: context => putSavedView(context, context.resource, context.body),
  }),
  route({
    method: 'DELETE',
    path: '/saved-views/:view',
    tag: TAG,
    summary: 'Delete a saved view',
    permissions: SEE,
    async handle(context) {
      await deleteSavedView(context, idOfPath(context))
      return undefined
    },
  }),
]
