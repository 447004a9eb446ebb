// The plan of a run (document 1 "IaC run status"; resources.md ): what each manifest would do to what
// exists now, in which order, or every fault. What it would write is tried out and undone. Which resource a manifest
// means: match-existing.ts; whether it makes, changes or leaves it: manifest-effect.ts.
import { createHash } from 'node:crypto'
import { applyOrder } from '../../../core/iac/apply-order.ts'
import { type ItemAction, titleOfPlan } from '../../../core/iac/run-status.ts'
import type { FieldDiff } from '../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import type { RunError, RunFile } from '../platform/db/schema-iac.ts'
import { render, type Words } from '../platform/http/api-texts.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { FAULTS_MAX, fieldFault, sameResourceFault, specFault } from './fault-place.ts'
import { addedReferences, changedReferences } from './kept-references.ts'
import { isKindPermissionNeeded } from './kind-permission-needed.ts'
import type { NameFinder, Reading, Reference } from './kinds/manifest-kind.ts'
import { type Manifest, readManifest, type SentFile } from './manifest.ts'
import { type Compared, compareItem, desiredName } from './manifest-effect.ts'
import { type Matched, matchExisting } from './match-existing.ts'
import { type RunNames, runNames, withNewNames } from './names-after-run.ts'
import { findNames, madeKey } from './resolve-names.ts'
import { LEAVES_MAX, leafItems } from './run-limits.ts'
import { traitsOf } from './traits-for-workflows.ts'
import { type Trial, tryItems } from './try-items.ts'
import { usableCompaniesBySlug } from './usable-companies.ts'

export type PlannedItem = {
  readonly path: string
  readonly companyId: string
  /** The slug of the company. */
  readonly company: string
  readonly kind: string
  readonly name: string
  readonly action: ItemAction
  readonly adopts: boolean
  readonly diff: readonly FieldDiff[]
  readonly diffHash: string
  readonly spec: Unchecked | null
  readonly resourceId: string | null
  readonly baseVersion: number | null
  readonly refersTo: readonly string[]
  readonly requires: string
  readonly forbidden: boolean
  /** By which approval workflows choose. */
  readonly environments: readonly string[]
  readonly tags: readonly string[]
}

export type Plan = {
  readonly files: readonly RunFile[]
  /** How many manifests each kind has. */
  readonly kinds: Readonly<Record<string, number>>
  /** In the order of applying; none when there are errors. */
  readonly items: readonly PlannedItem[]
  readonly errors: readonly RunError[]
  /** Paths of items that were judged but not tried out: the run has too many parts. */
  readonly untried: readonly string[]
  readonly title: string
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Lets other requests have their turn between files, each of which may take a while. */
const pause = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

async function readFiles(context: RouteContext, sent: readonly SentFile[]) {
  const companies = await usableCompaniesBySlug(context)
  const files: RunFile[] = []
  const manifests: Manifest[] = []
  const errors: RunError[] = []
  const kinds: Record<string, number> = {}
  for (const file of sent) {
    const read = readManifest(file, companies, context.language)
    files.push({ path: file.path, contents: read.contents, sha256: sha256(read.contents) })
    if (read.kind !== null) kinds[read.kind] = (kinds[read.kind] ?? 0) + 1
    if (read.manifest !== null) manifests.push(read.manifest)
    errors.push(...read.errors)
    await pause()
  }
  return { files, manifests, errors, kinds }
}

/** Manifests that mean one resource: every one after the first is a fault that names both. */
function sameResource(matched: readonly Matched[]): RunError[] {
  const seen = new Map<string, string>()
  return matched.flatMap(({ manifest, existing }) => {
    const { kind, companyId, slug, path, isAbsent, spec } = manifest
    const keys = [`${companyId} ${kind.kind} slug ${slug}`]
    if (existing !== null) keys.push(`${companyId} ${kind.kind} id ${existing.id}`)
    else if (kind.isNameUnique && !isAbsent)
      keys.push(`${companyId} ${kind.kind} name ${desiredName(spec, slug).toLowerCase()}`)
    const other = keys.map(key => seen.get(key)).find(each => each !== undefined)
    for (const key of keys) if (!seen.has(key)) seen.set(key, path)
    return other === undefined ? [] : [sameResourceFault(manifest, other)]
  })
}

/** Manifests that mean a resource which another manifest is bound to. */
const boundElsewhere = (matched: readonly Matched[]): RunError[] =>
  matched.flatMap(({ manifest, boundTo }) =>
    boundTo === null
      ? []
      : [
          {
            path: manifest.path,
            line: manifest.lineOf(['metadata', 'name']),
            message: `metadata.name: the resource that ${manifest.slug} means is that of manifest ${boundTo}`,
          },
        ],
  )

type Referred = {
  readonly refersTo: readonly string[]
  /** What no resource is called, and no manifest of the run makes. */
  readonly missing: readonly Reference[]
  readonly find: NameFinder
}

const missingFault = (manifest: Manifest, { kind, name, at }: Reference): RunError =>
  specFault(manifest, at, `there is no ${kind} ${name}, and no manifest of the run makes it`)

/** What the references of a manifest mean, and which other manifests of the run they are to. */
async function refer(reading: Reading, { manifest }: Matched, { made, renames }: RunNames): Promise<Referred> {
  const references = manifest.isAbsent ? [] : manifest.kind.referencesOf(manifest.spec)
  const find = await findNames(reading, references, made, renames)
  const missing = references.filter(({ kind, name, isOptional }) => !isOptional && find(kind, name) === null)
  const paths = references.flatMap(({ kind, name }) => made.get(madeKey(kind, name))?.path ?? [])
  return { refersTo: [...new Set(paths)].filter(path => path !== manifest.path), missing, find }
}

const requiredFor = ({ kind }: Manifest, action: ItemAction): string =>
  action === 'delete' ? (kind.permissions.delete ?? kind.permissions.manage) : kind.permissions.manage

async function planItem(
  context: RouteContext,
  reading: Reading,
  { manifest, existing, isBound, applied }: Matched,
  { refersTo, find }: Referred,
  needsPermission: boolean,
): Promise<{ item: PlannedItem; whole: Unchecked; errors: RunError[] }> {
  const { kind, slug, path, companyId } = manifest
  const compared: Compared = compareItem(
    kind,
    { slug, spec: manifest.isAbsent ? null : manifest.spec, applied },
    existing,
    find,
  )
  const isWritten = compared.action === 'create' || compared.action === 'update'
  const faults = isWritten ? await kind.faults(reading, compared.whole, existing) : new Map()
  const requires = requiredFor(manifest, compared.action)
  const item = {
    path,
    companyId,
    company: manifest.company,
    kind: kind.kind,
    name: slug,
    action: compared.action,
    adopts: existing !== null && !isBound && !manifest.isAbsent,
    diff: compared.diff,
    diffHash: compared.hash,
    spec: manifest.isAbsent ? null : manifest.spec,
    resourceId: existing?.id ?? null,
    baseVersion: existing?.version ?? null,
    refersTo,
    requires,
    forbidden: needsPermission && compared.action !== 'none' && !context.caller.permissions.has(requires),
    ...traitsOf([compared.whole, ...(existing ? [existing.spec] : [])]),
  }
  const said = (text: Words): string => render(text, context.language)
  const written = manifest.isAbsent ? [] : (kind.writtenFaults?.(manifest.spec) ?? [])
  const errors = [
    ...[...written].slice(0, FAULTS_MAX).map(([field, text]) => specFault(manifest, field.split('.'), said(text))),
    ...[...faults].slice(0, FAULTS_MAX).map(([field, text]) => fieldFault(manifest, compared.whole, field, said(text))),
  ]
  return { item, whole: compared.whole, errors }
}

async function matchAll(context: RouteContext, manifests: readonly Manifest[]): Promise<Matched[]> {
  const { hub } = context
  const matched: Matched[] = []
  for (const [companyId, ofCompany] of Map.groupBy(manifests, manifest => manifest.companyId))
    matched.push(...(await matchExisting({ hub, db: hub.database.db, companyId }, ofCompany)))
  const order = new Map(manifests.map((manifest, index) => [manifest, index]))
  return matched.sort((a, b) => (order.get(a.manifest) ?? 0) - (order.get(b.manifest) ?? 0))
}

/**
 * In the order of applying: creates and updates as they refer to each other, deletes after them the other way round.
 */
function ordered(items: readonly PlannedItem[], matched: readonly Matched[]): PlannedItem[] | RunError {
  const orderOf = new Map(matched.map(({ manifest }) => [manifest.path, manifest.kind.order]))
  const sorted = applyOrder(items.map(({ path, refersTo }) => ({ path, kindOrder: orderOf.get(path) ?? 0, refersTo })))
  if ('cycle' in sorted)
    return { path: sorted.cycle[0] ?? '', line: null, message: `refers to itself: ${sorted.cycle.join(' -> ')}` }
  const byPath = new Map(items.map(item => [item.path, item]))
  const all = sorted.paths.flatMap(path => byPath.get(path) ?? [])
  return [...all.filter(item => item.action !== 'delete'), ...all.filter(item => item.action === 'delete').reverse()]
}

async function planMatched(context: RouteContext, matched: readonly Matched[]) {
  const { hub } = context
  const errors: RunError[] = [...sameResource(matched), ...boundElsewhere(matched)]
  const trials = new Map<string, Trial>()
  const items: PlannedItem[] = []
  const needsPermission = await isKindPermissionNeeded(hub, context.companyId)
  for (const each of matched) {
    const { companyId } = each.manifest
    const reading = { hub, db: hub.database.db, companyId }
    const names = runNames(matched, companyId)
    const referred = await refer(reading, each, names)
    const { kind } = each.manifest
    const added = addedReferences(kind, referred.missing, each.existing)
    errors.push(...added.map(reference => missingFault(each.manifest, reference)))
    if (added.length > 0) continue
    const existing = each.existing && withNewNames(reading, kind, each.existing, names.renames)
    const named = { ...each, existing }
    const { item, whole, errors: faults } = await planItem(context, reading, named, referred, needsPermission)
    items.push(item)
    faults.push(...changedReferences(referred.missing, item.diff).map(ref => missingFault(each.manifest, ref)))
    errors.push(...faults)
    if (faults.length === 0) trials.set(item.path, { item, manifest: each.manifest, whole })
  }
  const sorted = ordered(items, matched)
  if (!Array.isArray(sorted)) return { items: [], errors: [...errors, sorted], untried: [] }
  const unmatched = new Set(errors.map(({ path }) => path))
  const whole = sorted.flatMap(({ path }) => (unmatched.has(path) ? [] : (trials.get(path) ?? [])))
  const tried = await tryItems(context, whole)
  return { items: sorted, errors: [...errors, ...tried.errors], untried: tried.untried }
}

/** Plans what was sent for the caller of a request. */
export async function planFiles(context: RouteContext, sent: readonly SentFile[]): Promise<Plan> {
  const { files, manifests, errors: formErrors, kinds } = await readFiles(context, sent)
  const errors = [...formErrors, ...twicePaths(sent)]
  const leaves = manifests.reduce((sum, { spec }) => sum + leafItems(spec), manifests.length)
  if (leaves > LEAVES_MAX)
    errors.push({ path: '', line: null, message: `a run has at most ${LEAVES_MAX} items; this one has ${leaves}` })
  // What was read is planned although another file has a fault, so that one answer names everything.
  const matched = leaves > LEAVES_MAX ? [] : await matchAll(context, manifests)
  const planned = await planMatched(context, matched)
  const all = [...errors, ...planned.errors]
  const items = all.length > 0 ? [] : planned.items
  return { files, kinds, items, errors: all, untried: planned.untried, title: titleOfPlan(items, all.length) }
}

/** Two files under one path could not be told apart. */
function twicePaths(sent: readonly SentFile[]): RunError[] {
  const seen = new Set<string>()
  return sent.flatMap(({ path }) => {
    const isTwice = seen.has(path)
    seen.add(path)
    return isTwice ? [{ path, line: null, message: `${path} and ${path} are one path; give each file its own` }] : []
  })
}
