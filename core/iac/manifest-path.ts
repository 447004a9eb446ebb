// The convention for paths of manifests, `{kind}/{company}/{name}.yml` (document 1 "IaC requests"; decision G-127).

type ManifestIdentity = { readonly kind: string; readonly company: string; readonly name: string }

type PathFault = {
  readonly part: keyof ManifestIdentity
  readonly inPath: string
  readonly inContents: string
}

/**
 * Where a path of exactly three parts says something else than the manifest; any other path says nothing. The third
 * part is compared without its `.yml`.
 */
export function pathFaults(path: string, contents: ManifestIdentity): PathFault[] {
  const parts = path.split('/')
  if (parts.length !== 3) return []
  const [kind = '', company = '', file = ''] = parts
  const said = { kind, company, name: file.replace(/\.yml$/, '') }
  const names = ['kind', 'company', 'name'] as const
  return names
    .filter(part => said[part] !== contents[part])
    .map(part => ({ part, inPath: said[part], inContents: contents[part] }))
}

/** The path of a manifest that has none of its own. */
export const conventionalPath = ({ kind, company, name }: ManifestIdentity): string => `${kind}/${company}/${name}.yml`

const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
export const isSlug = (text: string): boolean => SLUG.test(text)

/** A slug made of a display name; `resource` when the name has no letter or digit that a slug may have. */
export function slugFrom(name: string): string {
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 63)
    .replace(/^-+|-+$/g, '')
  return slug === '' ? 'resource' : slug
}
