// GET /web/servers.csv?company={slug}&q=…: the list of servers as a file, under the keys and the limit of its view.
import { standard } from '../../../http/http-response.ts'
import type { Hub } from '../../hub-context.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { respondError } from '../../platform/http/respond.ts'
import { toApiError } from '../../platform/http/unexpected-error.ts'
import type { SharedViews } from '../live/shared-views.ts'
import { languageOf } from '../shell/login.ts'
import { readerOf } from '../shell/page-visitor.ts'
import { serversView } from './servers.ts'
import { csvParams, serversCsv } from './servers-csv.ts'

/** Answers with the file, or with an error as the API has them. Never throws. */
export async function serveServersCsv(
  hub: Hub,
  views: SharedViews,
  request: Request,
  requestMeta: RequestMeta,
): Promise<Response> {
  const headers = { 'Cache-Control': 'no-store', 'X-Request-Id': requestMeta.requestId }
  try {
    const { companyId, search } = await readerOf(hub, request, () => serversView.permissions)
    const text = await serversCsv(views.contextFor(companyId, csvParams, search))
    return new Response(text, {
      headers: {
        ...headers,
        'Content-Type': 'text/csv; charset=utf-8',
        'Content-Disposition': 'attachment; filename="servers.csv"',
      },
    })
  } catch (error) {
    return standard(respondError(toApiError(error, hub.log), 'user', languageOf(request), headers, hub.now()))
  }
}
