// REST: /files (decision R-074).
import { Type } from '@sinclair/typebox'
import { invalidField } from '../platform/http/api-error.ts'
import { list } from '../platform/http/list.ts'
import { ANYTHING } from '../platform/http/negotiation.ts'
import { optional, text } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { download } from './download.ts'
import { changeFile, createFile, deleteFile, FILE_BYTES_MAX, type FileRow, fileCollection } from './files.ts'

const TAG = 'Search and files'
const VIEW = ['files.view']
const MANAGE = ['files.manage']
const NAME_MAX = 255
const DESCRIPTION_MAX = 2000
/** The largest file as base64, with its name and description. */
const BODY_BYTES_MAX = Math.ceil((FILE_BYTES_MAX * 4) / 3) + 64 * 1024
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}\s*$/

const file = resourceRoutes({
  path: '/files',
  parameter: 'file',
  tag: TAG,
  versioned: ({ file: { id, version } }: FileRow) => ({ id, version }),
  of: fileCollection,
})

type Upload = {
  readonly name: string
  readonly description?: string | null | undefined
  readonly content_base64?: string | undefined
}

function upload(context: RouteContext, { content_base64: base64, ...rest }: Upload): Promise<FileRow> {
  if (base64 === undefined) throw invalidField('file', 'required')
  if (!BASE64.test(base64)) throw invalidField('content_base64', 'base64')
  return createFile(context, { ...rest, content: Buffer.from(base64, 'base64') })
}

export const fileRoutes: readonly Route[] = [
  list({ path: '/files', tag: TAG, summary: 'List files, newest first', permissions: VIEW, of: fileCollection }),
  file.create({
    summary: 'Upload a file of at most 20 MiB, as a form or as base64',
    permissions: MANAGE,
    formBody: true,
    bodyBytesMax: BODY_BYTES_MAX,
    body: Type.Object({
      name: text(NAME_MAX),
      description: optional(text(DESCRIPTION_MAX)),
      content_base64: Type.Optional(Type.String({ examples: ['YSxiCg=='] })),
    }),
    act: upload,
  }),
  file.show({ summary: 'Show a file', permissions: VIEW }),
  file.change({
    summary: 'Rename or describe a file',
    permissions: MANAGE,
    refusals: [409, 412],
    body: Type.Object({
      name: Type.Optional(text(NAME_MAX)),
      description: optional(text(DESCRIPTION_MAX)),
      version: optional(Type.Integer()),
    }),
    act: changeFile,
  }),
  file.delete({
    summary: 'Delete a file that nothing refers to',
    permissions: MANAGE,
    refusals: [409, 412],
    act: deleteFile,
  }),
  route({
    method: 'GET',
    path: '/files/:file/download',
    tag: TAG,
    summary: 'Download a file, or a range of it',
    permissions: VIEW,
    resource: file.resource,
    answer: Type.Unsafe<Response>({ type: 'string' }),
    otherResponses: { 206: null, 304: null, 416: null },
    // A file is of the type that it was found to be.
    answerType: ANYTHING,
    handle: async ({ hub, resource, header }) => download(hub, { ...resource.file, name: resource.file.name }, header),
  }),
]
