// The product tree of a Red Hat VEX file (MAT-084, 085): a product id → release, package, module, version. Products are
// components of streams through relationships, and components of modules of streams through two of them.
import { isObject, isPackageName, type JsonObject, objectsOf, textOf } from './source.ts'

export type RedhatProduct = {
  readonly release: string
  readonly package: string
  readonly module: string | undefined
  /** `epoch:version-release`; absent where nothing is fixed. */
  readonly version: string | undefined
  /**
   * Whether it is the source package, by which rows are named, or one of its binaries. Older files name components
   * without saying which: those are sources, unless the same release names its sources too.
   */
  readonly kind: 'source' | 'binary' | 'unstated'
}

type Identity = { readonly cpe: string; readonly purl: string; readonly name: string }
type Relation = { readonly component: string; readonly parent: string }
type Component = Omit<RedhatProduct, 'release'>

const DEPTH_MAX = 16

/**
 * The release of a stream's CPE: `enterprise_linux:8` whatever its repository, `rhel:8.6-eus` for the paid extensions
 * of one minor release.
 */
function redhatReleaseOf(cpe: string): string | null {
  const base = /^cpe:\/[ao]:redhat:enterprise_linux:(\d+)(?:\.\d+)?(?::|$)/.exec(cpe)?.[1]
  if (base !== undefined) return `rhel:${base}`
  const extended =
    /^cpe:\/[ao]:redhat:(?:rhel|enterprise_linux)_(eus|aus|tus|e4s)(?:_long_life)?:(\d+\.\d+)(?::|$)/.exec(cpe)
  return extended ? `rhel:${extended[2]}-${extended[1]}` : null
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

const moduleOf = (label: string): string | undefined => /^[^:/\s]+:[^:/\s]+/.exec(label)?.[0]

/** `pkg:rpm/redhat/openssl@3.0.7-25.el9_3?arch=src&epoch=1`. Null for images and what is no rpm. */
function componentOfPurl(purl: string): Component | null {
  const found = /^pkg:rpm\/redhat\/([^@?#]+)(?:@([^?#]+))?(?:\?([^#]*))?/.exec(purl)
  if (!found) return null
  const fields = new Map(
    (found[3] ?? '').split('&').map(field => {
      const [key, ...value] = field.split('=')
      return [key ?? '', decoded(value.join('='))]
    }),
  )
  const name = decoded(found[1]!)
  const version = found[2] === undefined ? undefined : decoded(found[2])
  const epoch = fields.get('epoch') ?? '0'
  const arch = fields.get('arch')
  return {
    package: name,
    module: moduleOf(fields.get('rpmmod') ?? ''),
    version: version === undefined || epoch === '0' || epoch === '' ? version : `${epoch}:${version}`,
    kind: arch === undefined ? 'unstated' : arch === 'src' ? 'source' : 'binary',
  }
}

/** `nodejs:18/nodejs` is a package of a module; any other name with a slash is an image. */
function componentOfName(name: string): Component | null {
  const modular = /^([^:/]+:[^:/]+)\/([^/]+)$/.exec(name)
  if (modular) return { package: modular[2]!, module: modular[1]!, version: undefined, kind: 'unstated' }
  return name.includes('/') ? null : { package: name, module: undefined, version: undefined, kind: 'unstated' }
}

export class RedhatProducts {
  private readonly identities = new Map<string, Identity>()
  private readonly relations = new Map<string, Relation>()

  constructor(tree: JsonObject) {
    this.addBranches(tree, 0)
    for (const relation of objectsOf(tree.relationships)) {
      const full = relation.full_product_name
      if (!isObject(full)) continue
      this.relations.set(textOf(full.product_id), {
        component: textOf(relation.product_reference),
        parent: textOf(relation.relates_to_product_reference),
      })
    }
  }

  /** Null for a product of no release that is matched, and for what is no package. */
  find(productId: string): RedhatProduct | null {
    const relation = this.relations.get(productId)
    if (relation === undefined) return null
    const identity = this.identities.get(relation.component)
    const purl = identity?.purl ?? ''
    const ofName = componentOfName(relation.component)
    // A package of a module that has no fix: its older purl says nothing that its name does not say.
    const isNamed = purl === '' || (purl.startsWith('pkg:rpmmod/') && ofName?.module !== undefined)
    const component = isNamed ? ofName : componentOfPurl(purl)
    if (component === null || !isPackageName(component.package)) return null
    const outer = this.relations.get(relation.parent)
    const release = this.releaseOf(outer?.parent ?? relation.parent)
    if (release === null) return null
    const module = component.module ?? ofName?.module ?? (outer ? this.moduleNamed(outer.component) : undefined)
    return { ...component, release, module }
  }

  private releaseOf(productId: string): string | null {
    return redhatReleaseOf(this.identities.get(productId)?.cpe ?? '')
  }

  private moduleNamed(productId: string): string | undefined {
    const purl = this.identities.get(productId)?.purl ?? ''
    const found = /^pkg:rpmmod\/redhat\/([^@?#]+)@([^?#]+)/.exec(purl)
    return moduleOf(found ? `${decoded(found[1]!)}:${decoded(found[2]!)}` : productId)
  }

  private addBranches(node: JsonObject, depth: number): void {
    if (depth > DEPTH_MAX) return
    if (isObject(node.product)) this.addProduct(node.product)
    for (const product of objectsOf(node.full_product_names)) this.addProduct(product)
    for (const branch of objectsOf(node.branches)) this.addBranches(branch, depth + 1)
  }

  private addProduct(product: JsonObject): void {
    const helper = isObject(product.product_identification_helper) ? product.product_identification_helper : {}
    const identity = { cpe: textOf(helper.cpe), purl: textOf(helper.purl), name: textOf(product.name) }
    this.identities.set(textOf(product.product_id), identity)
  }
}
