// A report in words, for who runs `agent scan`.
import type { Report, ScanErrorCode } from '../../../core/matching/report-schema.ts'
import { printable } from '../../../core/printable.ts'

const MEANING: Readonly<Record<ScanErrorCode, string>> = {
  kernel_unpackaged: 'the running kernel is of no installed package: it is not compared',
  module_unknown: 'packages of modules do not say of which',
  no_packages: 'the list of packages is empty',
  os_release_missing: 'os-release is missing or names no distribution',
  package_incomplete: 'entries without a name or a version, or in an unknown state, are left out',
  packages_unreadable: 'the list of packages is missing, broken, or cannot be read by this user',
  third_party_packages: 'packages of other vendors are not compared',
  too_many_packages: 'there are more packages than a report may list',
  version_invalid: 'packages whose version cannot be compared are passed over',
}

/** A line for each thing that a report says. */
export function summarize(report: Report): string {
  const { os, kernel, packages, esm } = report
  const rows: [string, string][] = [
    ['system', [os.pretty_name ?? `${os.id} ${os.version_id}`.trim(), report.system].filter(Boolean).join(', ')],
    ['packages', packages === undefined ? 'none' : String(packages.name.length)],
    ['kernel', kernel.running],
    ['reboot required', report.reboot_required ? 'yes' : 'no'],
    ['livepatch', report.livepatch_active ? 'yes' : ''],
    ['esm', esm.attached ? ['attached', esm.infra && 'infra', esm.apps && 'apps'].filter(Boolean).join(', ') : ''],
    ['elts', report.elts ? 'yes' : ''],
    [
      'modules',
      Object.entries(report.modules)
        .map(entry => entry.join(':'))
        .join(', '),
    ],
    ...report.error_codes.map((code): [string, string] => ['note', `${code}: ${MEANING[code]}`]),
  ]
  return rows
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name.padEnd(18)} ${printable(value)}`)
    .join('\n')
}
