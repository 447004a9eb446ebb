// The files of the web interface: bundled into the program, served under names that change with their content.
import { sha256Hex } from '../../../core/series/hash.ts'
import { bundleForBrowser } from './bundle.ts' with { type: 'macro' }

type Asset = { readonly path: string; readonly body: string; readonly type: string }

const asset = (name: string, extension: string, type: string, body: string): Asset => ({
  path: `/web/${name}-${sha256Hex(body).slice(0, 12)}.${extension}`,
  body,
  type,
})

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2563eb"/>
<path d="M5 17h5l3-8 5 15 4-10 2 3h3" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/></svg>`

export const assets = {
  script: asset('live', 'js', 'text/javascript; charset=utf-8', bundleForBrowser('browser/main.ts')),
  style: asset('style', 'css', 'text/css; charset=utf-8', bundleForBrowser('browser/style.css')),
  icon: asset('icon', 'svg', 'image/svg+xml', ICON),
} as const

/** A year, unchanged: other content has another name. */
export const serveAsset = ({ body, type }: Asset): Response =>
  new Response(body, {
    headers: {
      'Content-Type': type,
      'Cache-Control': 'public, max-age=31536000, immutable',
      'X-Content-Type-Options': 'nosniff',
    },
  })
