// The files of a run as manifests, with every fault that needs no resource to be seen: text, form, path, kind, company,
// spec (decisions G-126, G-127; resources.md ).
import { Type } from '@sinclair/typebox'
import { isSlug, pathFaults } from '../../../core/iac/manifest-path.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { RunError } from '../platform/db/schema-iac.ts'
import { type Language, render, type Words, words } from '../platform/http/api-texts.ts'
import { schemaFaults, withoutEmptyTexts } from '../platform/http/request-schema.ts'
import { FAULTS_MAX } from './fault-place.ts'
import { manifestKind, manifestKinds } from './kinds/all-manifest-kinds.ts'
import type { ManifestKind } from './kinds/manifest-kind.ts'
import { API_VERSION, unknownMembers } from './manifest-schema.ts'
import { hideSecrets, withoutSecrets } from './manifest-secrets.ts'
import { type ManifestText, readManifestText } from './read-manifest-yaml.ts'

export type SentFile = { readonly path: string; readonly contents: string }

/** The companies that the caller may work in: ids by slug. */
export type UsableCompanies = ReadonlyMap<string, string>

export type Manifest = {
  readonly path: string
  readonly kind: ManifestKind
  readonly companyId: string
  readonly company: string
  readonly slug: string
  readonly isAbsent: boolean
  readonly spec: Unchecked
  readonly lineOf: ManifestText['lineOf']
}

type ReadFile = {
  /** As it may be kept: without the values of secrets. */
  readonly contents: string
  readonly manifest: Manifest | null
  /** The kind that it names, where it is one. */
  readonly kind: string | null
  readonly errors: readonly RunError[]
}

const MEMBERS = ['apiVersion', 'kind', 'metadata', 'ensure', 'spec']
const METADATA_MEMBERS = ['company', 'name']

type Path = readonly (string | number)[]
type Faults = { add(path: Path, text: Words): void; readonly list: RunError[] }

function faultsOf(file: string, lineOf: ManifestText['lineOf'], language: Language): Faults {
  const list: RunError[] = []
  return {
    list,
    add(path, text) {
      if (list.length >= FAULTS_MAX) return
      const [field, message] = [path.join('.'), render(text, language)]
      list.push({ path: file, line: lineOf(path), message: field === '' ? message : `${field}: ${message}` })
    },
  }
}

const namesOf = (list: Iterable<string>): string => [...list].sort().join(', ')

function checkMembers(value: Unchecked, known: readonly string[], path: Path, faults: Faults): void {
  for (const name of Object.keys(value))
    if (!known.includes(name)) faults.add([...path, name], words('unknown_key_of', { allowed: known.join(', ') }))
}

function checkHead(value: Unchecked, faults: Faults): ManifestKind | null {
  checkMembers(value, MEMBERS, [], faults)
  if (value.apiVersion !== API_VERSION) faults.add(['apiVersion'], words('must_be', { value: API_VERSION }))
  const kind = typeof value.kind === 'string' ? manifestKind(value.kind) : null
  if (kind === null)
    faults.add(['kind'], words('unknown_kind', { allowed: manifestKinds.map(each => each.kind).join(', ') }))
  if (value.ensure !== undefined && value.ensure !== 'present' && value.ensure !== 'absent')
    faults.add(['ensure'], words('one_of', { values: 'present, absent' }))
  return kind
}

function checkMetadata(value: Unchecked, kind: ManifestKind | null, companies: UsableCompanies, faults: Faults) {
  const metadata = isObject(value.metadata) ? value.metadata : null
  if (metadata === null) {
    faults.add(['metadata'], words('map_of', { members: METADATA_MEMBERS.join(', ') }))
    return null
  }
  checkMembers(metadata, METADATA_MEMBERS, ['metadata'], faults)
  const { company, name } = metadata
  const companyId = typeof company === 'string' ? companies.get(company) : undefined
  // The same text for one that does not exist and for one that the caller may not work in.
  if (companyId === undefined)
    faults.add(['metadata', 'company'], words('unknown_company', { allowed: namesOf(companies.keys()) }))
  const isName = typeof name === 'string' && (kind?.slugs?.isOne ?? isSlug)(name)
  const form = kind?.slugs ? words('one_of', { values: namesOf(kind.slugs.values) }) : words('slug_form')
  if (!isName) faults.add(['metadata', 'name'], form)
  return companyId === undefined || !isName ? null : { companyId, company: String(company), slug: name }
}

/** What is wrong with a spec by its schema alone. What is to be absent may say as little as it likes. */
function checkSpec({ spec: schema }: ManifestKind, spec: Unchecked, isAbsent: boolean, faults: Faults): void {
  for (const path of unknownMembers(schema, spec)) faults.add(['spec', ...path], words('unknown_key'))
  for (const [field, text] of schemaFaults(isAbsent ? Type.Partial(schema) : schema, spec))
    faults.add(['spec', ...(field === 'body' ? [] : field.split('.'))], text)
}

function checkPath(file: SentFile, value: Unchecked, faults: Faults): void {
  const metadata = isObject(value.metadata) ? value.metadata : {}
  const said = { kind: String(value.kind), company: String(metadata.company), name: String(metadata.name) }
  for (const { part, inPath, inContents } of pathFaults(file.path, said))
    faults.add([], words('path_differs', { part, path: inPath, contents: inContents }))
}

/** A name that is null is as good as none (decision G-13): what has it is called as its manifest. */
const withOwnName = ({ spec: { properties } }: ManifestKind, spec: Unchecked, slug: string): Unchecked =>
  spec.name === null && Object.hasOwn(properties, 'name') ? { ...spec, name: slug } : spec

/** Reads one file. */
export function readManifest(file: SentFile, companies: UsableCompanies, language: Language): ReadFile {
  const text = readManifestText(file.contents)
  if ('fault' in text) {
    const error = { path: file.path, ...text.fault }
    return { contents: withoutSecrets(file.contents), manifest: null, kind: null, errors: [error] }
  }
  const contents = hideSecrets(file.contents, text.hidden)
  const faults = faultsOf(file.path, text.lineOf, language)
  for (const path of text.secrets) faults.add(path, words('no_secrets'))
  const { value } = text
  if (!isObject(value)) {
    faults.add([], words('map_of', { members: 'apiVersion, kind, metadata, spec' }))
    return { contents, manifest: null, kind: null, errors: faults.list }
  }
  const kind = checkHead(value, faults)
  const named = checkMetadata(value, kind, companies, faults)
  checkPath(file, value, faults)
  const isAbsent = value.ensure === 'absent'
  const given = isObject(value.spec) ? value.spec : {}
  const spec = kind === null ? given : withoutEmptyTexts(kind.spec, kind.inManifestNames?.(given) ?? given)
  if (value.spec !== undefined && !isObject(value.spec)) faults.add(['spec'], words('map'))
  else if (value.spec === undefined && !isAbsent) faults.add(['spec'], words('required'))
  else if (kind !== null) {
    const shown = Object.fromEntries(Object.entries(spec).filter(([key]) => !isToldSecret(text, key)))
    checkSpec(kind, shown, isAbsent, faults)
  }
  const manifest =
    kind === null || named === null || faults.list.length > 0
      ? null
      : { path: file.path, kind, ...named, isAbsent, spec: withOwnName(kind, spec, named.slug), lineOf: text.lineOf }
  return { contents, manifest, kind: kind?.kind ?? null, errors: faults.list }
}

/** True for a member of the spec that was told as a secret, and need not be told as unknown too. */
const isToldSecret = (text: ManifestText, key: string): boolean =>
  text.secrets.some(path => path.length === 2 && path[0] === 'spec' && path[1] === key)
