// A command of bundle.ts, a process of its own because a macro cannot call the bundler: bundles an entry for browsers,
// where a language is named with its texts alone. A reader loads no word of a language that the page is not in.
// `bun bundle-texts.ts ENTRY FOLDER [LANGUAGE]`, called in the folder of this file.
import type { BunPlugin } from 'bun'
import type { Texts, WebLanguage } from './words/words.ts'

const [entry = '', folder = '', language = ''] = process.argv.slice(2)
const ending = language && `-${language}`

const textsOnly = (only: WebLanguage): BunPlugin => ({
  name: 'texts of one language',
  setup(build) {
    build.onLoad({ filter: /\/web\/words\/(?!words\.ts$)[a-z-]+\.ts$/ }, async ({ path }) => {
      const areas: Readonly<Record<string, Texts>> = await import(path)
      const kept = Object.entries(areas).map(([area, texts]) => {
        const its = JSON.stringify(Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, text[only]])))
        // The language is named once an area, and not with each text: there are hundreds.
        return `export const ${area} = Object.fromEntries(Object.entries(${its}).map(([key, ${only}]) => [key, { ${only} }]))\n`
      })
      return { contents: kept.join(''), loader: 'js' }
    })
  },
})

await Bun.build({
  entrypoints: [entry],
  outdir: folder,
  root: 'browser',
  target: 'browser',
  minify: true,
  splitting: true,
  naming: { entry: `[dir]/[name]${ending}.[ext]`, chunk: `[name]${ending}-[hash].[ext]` },
  jsx: { runtime: 'automatic', importSource: 'preact', development: false },
  plugins: language === 'en' || language === 'vi' ? [textsOnly(language)] : [],
})
