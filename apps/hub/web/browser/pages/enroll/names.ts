// What is to be added, as the ways of the wizard have it, as comma-separated values for the import: the one way by
// which the hub adds many servers, all of them or none, and may be sent again. A server that is known
// stays as it is, unless the file is to change it.

export type NamesWay = 'one' | 'list' | 'csv' | 'known' | 'open'
export type Names = {
  readonly way: NamesWay
  readonly one: string
  readonly list: string
  readonly csv: string
  /** The file changes servers that are known by their names. */
  readonly isChanging: boolean
  /** The licence is for the one server alone. */
  readonly isOnly: boolean
  /** A server of before, for which alone the licence is. */
  readonly known: { readonly id: string; readonly name: string } | null
}

const cell = (text: string): string => (/[",\r\n;\t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** `name[, address]` a line; empty lines do not count. */
const listed = (text: string): string[][] =>
  text
    .split(/\r?\n/)
    .map(line => line.split(/[,;\t]/).map(part => part.trim()))
    .filter(([name]) => name !== undefined && name !== '')

export type ToImport = { readonly csv: string; readonly count: number; readonly existing: 'update' | 'keep' }

/** The CSV of the import, with the number of its servers; null: nothing is added before agents come. */
export function toImport({ way, one, list, csv, isChanging }: Names): ToImport | null {
  if (way === 'open' || way === 'known') return null
  if (way === 'csv')
    return {
      csv,
      count: Math.max(0, csv.split(/\r?\n/).filter(line => line.trim() !== '').length - 1),
      existing: isChanging ? 'update' : 'keep',
    }
  const rows = way === 'one' ? [[one.trim()]] : listed(list)
  const hasAddress = rows.some(row => (row[1] ?? '') !== '')
  const lines = rows.map(([name = '', address = '']) =>
    [cell(name), cell(name), ...(hasAddress ? [cell(address)] : [])].join(','),
  )
  const header = hasAddress ? 'name,hostname,ip_address' : 'name,hostname'
  const count = rows.filter(([name]) => name !== '').length
  return { csv: [header, ...lines, ''].join('\n'), count, existing: 'keep' }
}
