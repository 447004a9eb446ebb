// Fetches the parts of one source from where it is published, or from a mirror (MAT-060 to 063).
import { join } from 'node:path'
import { KNOWN_RELEASES } from '../../../core/matching/end-of-life.ts'
import type { FetchContext } from './fetch-context.ts'
import { checkAddress, fetchFile } from './fetch-file.ts'
import { fetchRedhat } from './fetch-redhat.ts'
import type { InputPart, SourceInput } from './import/job.ts'
import { SourceRefused } from './source-refused.ts'
import type { Source, SourcePart } from './sources/catalogue.ts'

/** `https://mirror/base` and the default's path. */
function mirrored(url: string, mirror: string | null): string {
  if (mirror === null) return url
  const { pathname, search } = new URL(url)
  return `${mirror.replace(/\/+$/, '')}${pathname}${search}`
}

const fileNameOf = (url: string): string => new URL(url).pathname.split('/').at(-1) ?? ''

function partsOf(source: Source, context: FetchContext): readonly SourcePart[] {
  if (context.address !== null) return [{ part: '', url: context.address }]
  const parts = source.parts({ releases: KNOWN_RELEASES, nowMs: context.nowMs })
  return parts.map(part => ({ ...part, url: mirrored(part.url, context.mirror) }))
}

const NOT_THERE = 'it answers 404: it is not at this address'

/** Null when nothing is new of it; `absent` when it is optional and not there. */
async function fetchPart(
  source: Source,
  part: SourcePart,
  at: number,
  context: FetchContext,
): Promise<InputPart | 'absent' | null> {
  checkAddress(part.url)
  const before = context.previous.find(({ name, part: own }) => name === source.name && own === part.part)
  const isSame = before !== undefined && before.url === part.url
  const known = isSame ? { etag: before.etag, lastModified: before.last_modified } : { etag: '', lastModified: '' }
  const path = join(context.scratch, `${source.name}-${at}`)
  const fetched = await fetchFile(part.url, path, known, context.options)
  if (fetched.kind === 'absent') {
    if (part.isOptional) return 'absent'
    throw new SourceRefused(NOT_THERE)
  }
  if (fetched.kind === 'unchanged' || (isSame && fetched.sha256 === before.sha256)) return null
  const { etag, lastModified, sha256 } = fetched
  return {
    part: part.part,
    url: part.url,
    path: fetched.path,
    fileName: fileNameOf(part.url),
    etag,
    lastModified,
    sha256,
  }
}

/**
 * What is new of a source; null when nothing is. Throws SourceRefused when a part cannot be had: the others of the same
 * source wait for it, since a release with half of its repositories would look safer than it is.
 */
export async function fetchSource(source: Source, context: FetchContext): Promise<SourceInput | null> {
  if (source.name === 'redhat') return await fetchRedhat(source, partsOf(source, context)[0]!.url, context)
  const parts: InputPart[] = []
  const wanted = partsOf(source, context)
  let absent = 0
  for (const [at, part] of wanted.entries()) {
    const input = await fetchPart(source, part, at, context)
    if (input === 'absent') absent++
    else if (input !== null) parts.push(input)
  }
  if (absent === wanted.length) throw new SourceRefused(NOT_THERE)
  const isWhole = context.address !== null
  return parts.length === 0 ? null : { source: source.name, parts, replaces: isWhole ? 'all' : 'part' }
}
