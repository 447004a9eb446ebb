// The files of the web interface: bundled and compressed into the program, served below a folder whose name changes
// with their content, so that browsers keep them for a year.
import { gunzipSync } from 'node:zlib'
import { bundlePages } from '#pages' with { type: 'macro' }
import { sha256Hex } from '../../../core/series/hash.ts'

type Asset = {
  readonly path: string
  readonly type: string
  readonly brotli: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer>
}

const bundles = Object.values(bundlePages())

/** All lie in one folder, where they find each other; another byte of any of them is another folder. */
const folder = `/web/${sha256Hex(bundles.map(({ digest }) => digest).join(' ')).slice(0, 16)}/`

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
}

export const assets: readonly Asset[] = bundles.flatMap(({ files }) =>
  files.map(({ name, brotli, gzip }) => ({
    path: folder + name,
    type: TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
    brotli: new Uint8Array(Buffer.from(brotli, 'base64')),
    gzip: new Uint8Array(Buffer.from(gzip, 'base64')),
  })),
)

export const assetPaths = {
  /** With the texts of its language alone. */
  script: { en: `${folder}main-en.js`, vi: `${folder}main-vi.js` },
  style: `${folder}main-en.css`,
  worker: `${folder}shared-worker.js`,
  icon: '/web/icon.svg',
} as const

/** 'br', 'gzip' or null: the best encoding that a browser accepts. */
export function encodingFor(request: Request): 'br' | 'gzip' | null {
  const accepted = request.headers.get('accept-encoding') ?? ''
  if (/\bbr\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(accepted)) return 'br'
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(accepted) ? 'gzip' : null
}

/** What a worker may do: load its parts and ask the hub. Scripts and sheets have the policy of their document. */
const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'"

/** A year, unchanged: other content has another name. */
export function serveAsset(request: Request, { type, brotli, gzip }: Asset): Response {
  const encoding = encodingFor(request)
  const body = encoding === 'br' ? brotli : encoding === 'gzip' ? gzip : new Uint8Array(gunzipSync(gzip))
  return new Response(body, {
    headers: {
      'Content-Type': type,
      'Cache-Control': 'public, max-age=31536000, immutable',
      'Content-Security-Policy': POLICY,
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
      ...(encoding === null ? {} : { 'Content-Encoding': encoding }),
    },
  })
}

/** The sign of the product, with the worst severity that nobody is on as a shape in its corner; grey: not known. */
const iconText = (ground: string, badge: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${ground}"/>
<path d="M5 17h5l3-8 5 15 4-10 2 3h3" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/>${badge}</svg>`

const OCTAGON = '<path d="M20 14h6l5 5v7l-5 5h-6l-5-5v-7z" fill="#c8102e" stroke="#fff" stroke-width="2"/>'
const TRIANGLE = '<path d="M23 14l8.500 17h-17z" fill="#ffb000" stroke="#fff" stroke-width="2"/>'

const icons: Readonly<Record<string, string>> = {
  [assetPaths.icon]: iconText('#0b5cd6', ''),
  '/web/icon-critical.svg': iconText('#0b5cd6', OCTAGON),
  '/web/icon-warning.svg': iconText('#0b5cd6', TRIANGLE),
  '/web/icon-unknown.svg': iconText('#6b7280', ''),
}
export const iconPaths = Object.keys(icons)

export const serveIcon = (path: string): Response =>
  new Response(icons[path] ?? '', {
    headers: {
      'Content-Type': 'image/svg+xml',
      'Cache-Control': 'public, max-age=86400',
      'X-Content-Type-Options': 'nosniff',
    },
  })
