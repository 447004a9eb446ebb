// Comma-separated values (RFC 4180): quotes enclose a cell that contains a comma, a quote (doubled) or a line break. A
// byte order mark and empty lines are skipped; when the header has no comma, a semicolon or a tab is the separator.
import { CsvError, parse } from 'csv-parse/sync'

type CsvRow = { readonly line: number; readonly cells: readonly string[] }
/** The rows with the line in which each begins, or the line of the row whose quotes are wrong. */
type ParsedCsv = { readonly rows: readonly CsvRow[] } | { readonly wrongQuoteLine: number }

const separatorOf = (header: string): string => [',', ';', '\t'].find(each => header.includes(each)) ?? ','
const lineBreaksIn = (text: string): number => text.split('\n').length - 1
const firstLineOf = (text: string): string => /^[^\r\n]*/.exec(text)?.[0] ?? ''

/** Ends the parsing after the last row that is needed: a file of a million rows is not read to its end. */
class EnoughRows extends Error {}

/**
 * Parses the first `rowsMax` rows, and one more if there are more. Spaces within quotes are part of a cell where
 * `keepsQuoted` says so.
 */
export function parseCsv(given: string, rowsMax: number, keepsQuoted = false): ParsedCsv {
  const text = given.replace(/^\uFEFF/, '')
  const rows: CsvRow[] = []
  let lastLine = 0
  try {
    parse(text, {
      delimiter: separatorOf(firstLineOf(text)),
      // A quote in the middle of a cell is a character like any other.
      relax_quotes: true,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
      on_record: (cells: string[], { lines }) => {
        lastLine = lines
        // The library reports the line in which a row ends.
        const line = lines - lineBreaksIn(cells.join(''))
        if (cells.length > 1 || cells[0]?.trim())
          rows.push({ line, cells: keepsQuoted ? cells : cells.map(cell => cell.trim()) })
        if (rows.length > rowsMax) throw new EnoughRows()
        return null
      },
    })
    return { rows }
  } catch (error) {
    if (error instanceof EnoughRows) return { rows }
    if (!(error instanceof CsvError)) throw error
    const rest = text.split('\n').slice(lastLine)
    const skipped = rest.findIndex(line => line.trim() !== '')
    return { wrongQuoteLine: lastLine + 1 + Math.max(0, skipped) }
  }
}
