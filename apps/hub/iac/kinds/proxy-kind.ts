// Proxies in manifests: the fields of the registry, and beside them all of the sites of a reverse one, by name. A site
// says where its requests go as `{kind, name}` of a virtual server or pool (`edge/www`, with the load balancer before),
// as a server with its port, or as a url.
import { Type } from '@sinclair/typebox'
import { assert } from '../../../../core/assert.ts'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { parseSiteName } from '../../../../core/proxies/site-fields.ts'
import { type Words, words } from '../../platform/http/api-texts.ts'
import { integer, listOf, oneOf, optional, text } from '../../platform/http/request-schema.ts'
import { proxyKind } from '../../proxies/proxy.ts'
import { proxySiteKind, upstreamKinds, usualSiteName } from '../../proxies/proxy-site.ts'
import { editorOf } from '../../resources/editor.ts'
import type { Kind } from '../../resources/kind.ts'
import { deleteResource } from '../../resources/write-resource.ts'
import type { Existing, ManifestKind, NameFinder, Reading, Reference, Writing } from './manifest-kind.ts'
import { namesById } from './names-by-id.ts'
import {
  ANY_ID,
  filled,
  itemsOf,
  judgePart,
  keptParts,
  type PartRow,
  partFields,
  partInput,
  partRows,
  partSpec,
  partsInManifestNames,
  shownPart,
  withMember,
  writePart,
} from './parts.ts'
import { manifestKindOf } from './registry-kind.ts'

const base = manifestKindOf(proxyKind as Kind)
assert(base !== null, 'proxies are in manifests')
const proxy: ManifestKind = base

const fields = partFields(proxySiteKind)
const upstreamSpec = Type.Object({
  kind: optional(oneOf(upstreamKinds)),
  name: optional(text(511)),
  port: optional(integer(1, 65_535)),
  url: optional(text(2048)),
})
const siteSpec = partSpec(fields, { upstream: optional(upstreamSpec) })

/** The upstream of a site that names a resource. */
const namedUpstream = ({ upstream }: Unchecked): { readonly kind: string; readonly name: string } | null =>
  isObject(upstream) && typeof upstream.kind === 'string' && typeof upstream.name === 'string'
    ? { kind: upstream.kind, name: upstream.name }
    : null

/** A site with the name that it would have by itself, host names in the spelling that is kept, names as displayed. */
function wholeSite(given: Unchecked, find: NameFinder): Unchecked {
  const hostnames = (Array.isArray(given.hostnames) ? given.hostnames : []).map(name => parseSiteName(name) ?? name)
  const path = typeof given.path === 'string' ? given.path : '/'
  const upstream = namedUpstream(given)
  const certificate = typeof given.certificate === 'string' ? given.certificate : null
  return filled({
    ...given,
    hostnames,
    name: given.name || usualSiteName(String(hostnames[0] ?? ''), path),
    certificate: certificate && (find('certificate', certificate)?.name ?? certificate),
    upstream: isObject(given.upstream)
      ? filled({
          ...given.upstream,
          ...(upstream && { name: find(upstream.kind, upstream.name)?.name ?? upstream.name }),
        })
      : null,
  })
}

const sitesOf = (spec: Unchecked, find: NameFinder) =>
  spec.sites
    ? {
        sites: itemsOf(spec.sites).map(site => wholeSite(site, find)),
      }
    : {}

type Upstream = { readonly kind: string | null; readonly id: string | null; readonly [member: string]: unknown }

async function withSites(reading: Reading, found: readonly Existing[]): Promise<Existing[]> {
  const rows = await partRows(
    reading,
    proxySiteKind,
    'proxy_id',
    found.map(({ id }) => id),
  )
  const names = await namesById(
    reading,
    'certificate',
    rows.flatMap(row => (row.certificate_id ? [String(row.certificate_id)] : [])),
  )
  const shown = rows.map(row => ({ row, site: shownPart(fields, row, names) }))
  const namesOf = new Map<string, ReadonlyMap<string, string>>()
  for (const kind of upstreamKinds) {
    const ids = rows.flatMap(row => (row.upstream_kind === kind ? [String(row.upstream_id)] : []))
    namesOf.set(kind, await namesById(reading, kind, ids))
  }
  const upstreamOf = ({ kind, id, ...rest }: Upstream) =>
    filled({ ...rest, kind, name: kind === null ? null : (namesOf.get(kind)?.get(id ?? '') ?? id) })
  const siteOf = (site: Unchecked): Unchecked =>
    filled({ ...site, upstream: isObject(site.upstream) ? upstreamOf(site.upstream as Upstream) : null })
  return found.map(existing => {
    const own = shown.filter(({ row }) => row.proxy_id === existing.id)
    return { ...existing, spec: { ...existing.spec, sites: own.map(({ site }) => siteOf(site)) } }
  })
}

/** A site in the names of the API. */
function inputOf(site: Unchecked, find: NameFinder): Unchecked {
  const upstream = namedUpstream(site)
  const { name: _name, ...rest } = isObject(site.upstream) ? site.upstream : {}
  return {
    ...partInput(fields, site, (kind, name) => find(kind, String(name))?.id ?? ANY_ID),
    ...(upstream ? { upstream: { ...rest, id: find(upstream.kind, upstream.name)?.id ?? ANY_ID } } : {}),
  }
}

/** What the form of the API would refuse of the sites, by their places. */
async function siteFaults(spec: Unchecked): Promise<Map<string, Words>> {
  const sites = itemsOf(spec.sites)
  if (spec.mode === 'forward' && sites.length > 0) return new Map([['sites', words('proxy_mode', { mode: 'reverse' })]])
  const faults = new Map<string, Words>()
  for (const [index, site] of sites.entries())
    await judgePart(
      faults,
      proxySiteKind,
      inputOf(site, () => null),
      `sites.${index}`,
    )
  return faults
}

async function applySites(
  writing: Writing,
  proxyId: string,
  before: Unchecked | null,
  spec: Unchecked,
  find: NameFinder,
): Promise<void> {
  if (!spec.sites) return
  const { tx, context } = writing
  const known: PartRow[] = await partRows(writing, proxySiteKind, 'proxy_id', [proxyId])
  const names = new Set(itemsOf(spec.sites).map(({ name }) => name))
  for (const { id, name } of known) if (!names.has(name)) await deleteResource(tx, proxySiteKind, editorOf(context), id)
  const isKept = keptParts(before, 'sites')
  for (const [index, site] of itemsOf(spec.sites).entries()) {
    if (isKept(site)) continue
    const wanted = { parentId: proxyId, body: inputOf(site, find), place: `sites.${index}` }
    await writePart(writing, proxySiteKind as Kind, known, wanted)
  }
}

function siteReferences(spec: Unchecked): Reference[] {
  return itemsOf(spec.sites).flatMap((site, index) => {
    const upstream = namedUpstream(site)
    return [
      ...(typeof site.certificate === 'string' && site.certificate !== ''
        ? [{ kind: 'certificate', name: site.certificate, at: ['sites', index, 'certificate'] }]
        : []),
      ...(upstream ? [{ ...upstream, at: ['sites', index, 'upstream', 'name'] }] : []),
    ]
  })
}

const ofProxy = ({ sites: _sites, ...rest }: Unchecked): Unchecked => rest

export const proxyManifests: ManifestKind = {
  ...proxy,
  dependsOn: [...new Set([...proxy.dependsOn, 'server', 'load-balancer', 'certificate'])],
  spec: Type.Object({ ...proxy.spec.properties, sites: optional(listOf(siteSpec, proxySiteKind.limit)) }),
  inManifestNames: spec =>
    withMember(proxy.inManifestNames?.(spec) ?? spec, 'sites', sites => partsInManifestNames(fields, sites)),
  defaults: { ...proxy.defaults, sites: [] },
  whole: { sites: ['name'] },
  referencesOf: spec => [...proxy.referencesOf(spec), ...siteReferences(spec)],
  partsOf: spec =>
    sitesOf(spec, () => null).sites?.map(({ name }) => ({ kind: 'proxy_site', name: String(name) })) ?? [],
  normal: (spec, find) => ({ ...proxy.normal(ofProxy(spec), find), ...sitesOf(spec, find) }),
  faults: async (reading, spec, existing) =>
    new Map([...(await proxy.faults(reading, ofProxy(spec), existing)), ...(await siteFaults(spec))]),
  byIds: async (reading, ids) => withSites(reading, await proxy.byIds(reading, ids)),
  candidates: async (reading, spec, slug) => withSites(reading, await proxy.candidates(reading, ofProxy(spec), slug)),
  list: async (reading, filter, range) => withSites(reading, await proxy.list(reading, filter, range)),
  async create(writing, spec, find, slug) {
    const id = await proxy.create(writing, ofProxy(spec), find, slug)
    await applySites(writing, id, null, spec, find)
    return id
  },
  async update(writing, existing, changed, spec, find) {
    await proxy.update(writing, existing, changed, ofProxy(spec), find)
    if (changed.has('sites')) await applySites(writing, existing.id, existing.spec, spec, find)
  },
}
