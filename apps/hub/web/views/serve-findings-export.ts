// GET /web/findings-export/{id}?company={slug}: an export of findings that is ready, for a link of a page: a link names
// no company in a header, as the API wants it. Under the keys of the API's download and the limit of the pages.
import { standard } from '../../../http/http-response.ts'
import type { Hub } from '../../hub-context.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { respondError } from '../../platform/http/respond.ts'
import { toApiError } from '../../platform/http/unexpected-error.ts'
import { downloadExport, findExport } from '../../security/exports/exports.ts'
import { languageOf } from '../shell/login.ts'
import { readerOf } from '../shell/page-visitor.ts'

const KEYS = ['security.export'] as const

/** Answers with the file, or with an error as the API has them. Never throws. */
export async function serveFindingsExport(hub: Hub, request: Request, requestMeta: RequestMeta): Promise<Response> {
  const headers = { 'Cache-Control': 'no-store', 'X-Request-Id': requestMeta.requestId }
  try {
    const { guest, companyId } = await readerOf(hub, request, () => KEYS)
    const path = new URL(request.url).pathname
    const params = { export: path.slice(path.lastIndexOf('/') + 1) }
    const response = downloadExport(hub, await findExport({ hub, companyId, caller: guest.caller, params }))
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
    return response
  } catch (error) {
    return standard(respondError(toApiError(error, hub.log), 'user', languageOf(request), headers, hub.now()))
  }
}
