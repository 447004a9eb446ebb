// The one file that knows the regular-expression engine: RE2 syntax, linear time, anchored at both ends (document 2
// "Rule"). `re2js` because the native `re2` does not load in Bun; it has no look-ahead and no back-references, as RE2.
import { RE2JS } from 're2js'

/** A compiled expression; `matches` is true only for the whole text. */
export type Regex = { readonly source: string; matches(text: string): boolean }

/** Compiles RE2 syntax. Returns what is wrong with it as `{ fault }` instead of throwing. */
export function compileRegex(source: string): Regex | { fault: string } {
  try {
    const compiled = RE2JS.compile(source)
    return { source, matches: text => compiled.matches(text) }
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) }
  }
}
