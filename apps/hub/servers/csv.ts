// Comma-separated values as RFC 4180 has them: quotes around what holds a comma, a quote (doubled) or a line break. A
// byte order mark and empty lines are skipped; a semicolon or a tab separates when the header has no comma.

export type CsvRow = { readonly line: number; readonly cells: readonly string[] }

const separatorOf = (header: string): string => [',', ';', '\t'].find(each => header.includes(each)) ?? ','

/** The rows with the line that each begins in, or the line of a quote that nothing closes. */
export function parseCsv(given: string): { readonly rows: readonly CsvRow[] } | { readonly openQuoteLine: number } {
  const text = given.replace(/^\uFEFF/, '')
  const separator = separatorOf(/^[^\r\n]*/.exec(text)?.[0] ?? '')
  const rows: CsvRow[] = []
  let cells: string[] = []
  let cell = ''
  let line = 1
  let rowLine = 1
  let quoteLine = 0
  let at = 0
  const endRow = () => {
    cells.push(cell)
    if (cells.length > 1 || cell.trim() !== '') rows.push({ line: rowLine, cells: cells.map(each => each.trim()) })
    cells = []
    cell = ''
  }
  while (at < text.length) {
    const char = text[at] ?? ''
    if (char === '\n') line++
    if (quoteLine > 0) {
      if (char !== '"') cell += char
      else if (text[at + 1] === '"') {
        cell += '"'
        at++
      } else quoteLine = 0
    } else if (char === '"' && cell.trim() === '') {
      cell = ''
      quoteLine = line
    } else if (char === separator) {
      cells.push(cell)
      cell = ''
    } else if (char === '\n') {
      endRow()
      rowLine = line
    } else if (char !== '\r') cell += char
    at++
  }
  if (quoteLine > 0) return { openQuoteLine: quoteLine }
  endRow()
  return { rows }
}
