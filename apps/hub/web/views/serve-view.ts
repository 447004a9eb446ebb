// GET /web/view/{view}?company={slug}&…: the data of a page as JSON, outside the API and with a limit of its own
// (decision G-123), from the same records and under the same permission keys.
import { standard } from '../../../http/http-response.ts'
import type { Hub } from '../../hub-context.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { respondError } from '../../platform/http/respond.ts'
import { toApiError } from '../../platform/http/unexpected-error.ts'
import { encodingFor } from '../assets.ts'
import { SharedViews } from '../live/shared-views.ts'
import { languageOf } from '../shell/login.ts'
import { readerOf } from '../shell/page-visitor.ts'

/** Answers with the view, or with an error as the API has them. Never throws. */
export async function serveView(
  hub: Hub,
  views: SharedViews,
  request: Request,
  requestMeta: RequestMeta,
): Promise<Response> {
  const headers = { 'Cache-Control': 'no-store', 'X-Request-Id': requestMeta.requestId }
  try {
    const { pathname } = new URL(request.url)
    const name = pathname.slice(pathname.lastIndexOf('/') + 1)
    const { guest, companyId, search } = await readerOf(hub, request, () => SharedViews.viewNamed(name).permissions)
    const { permissions } = guest.caller
    const wanted = request.headers.has('x-view-fresh') ? 'now' : 'at_hand'
    const made = await views.get({ name, companyId, search, permissions, wanted })
    const { body, encoding } = made.bytes(encodingFor(request))
    return new Response(body, {
      headers: {
        ...headers,
        'Content-Type': 'application/json; charset=utf-8',
        'X-View-Version': made.version,
        'X-View-Made-At': String(made.madeAtMs),
        ...(encoding === null ? {} : { 'Content-Encoding': encoding }),
      },
    })
  } catch (error) {
    return standard(respondError(toApiError(error, hub.log), 'user', languageOf(request), headers, hub.now()))
  }
}
