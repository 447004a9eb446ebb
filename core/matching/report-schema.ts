// The scanner's report, schema 1 (MAT-021): what a server says of its packages, and the only form in which it is taken.
import { type Static, Type } from '@sinclair/typebox'

/** The most packages that a report may list; a server with more sends `too_many_packages` and no list (MAT-024). */
export const MAX_PACKAGES = 20_000

/** Why a report says less than it should, each at most once and sorted (MAT-016). */
const SCAN_ERROR_CODES = [
  'kernel_unpackaged',
  'module_unknown',
  'no_packages',
  'os_release_missing',
  'package_incomplete',
  'packages_unreadable',
  'third_party_packages',
  'too_many_packages',
  'version_invalid',
] as const

export type ScanErrorCode = (typeof SCAN_ERROR_CODES)[number]

/** The package systems whose versions can be ordered. */
export const PACKAGE_SYSTEMS = ['dpkg', 'rpm', 'apk'] as const

export type PackageSystem = (typeof PACKAGE_SYSTEMS)[number]

const word = (maxLength: number) => Type.String({ maxLength })
const column = (maxLength: number) => Type.Array(word(maxLength), { maxItems: MAX_PACKAGES })
const moment = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/**
 * Columns of one length, sorted by (name, arch, version) in byte order (MAT-022). rpm versions are
 * `epoch:version-release`, epoch left out when 0. `module` is the label `name:stream:…` or empty, `vendor` is empty
 * where the package system has none.
 */
const packageColumns = Type.Object({
  name: column(256),
  version: column(256),
  arch: column(32),
  source: column(256),
  source_version: column(256),
  module: column(256),
  vendor: column(256),
})

export type PackageColumns = Static<typeof packageColumns>

export const reportSchema = Type.Object({
  schema: Type.Literal(1),
  collected_at_ms: moment,
  scanner_version: word(64),
  /** SHA-256 of `svc-scan-v1\n` and the machine-id, in hex; empty when it has none (MAT-020). */
  machine_id_hash: Type.String({ pattern: '^([0-9a-f]{64})?$' }),
  os: Type.Object({
    id: word(128),
    version_id: word(128),
    codename: word(128),
    id_like: Type.Array(word(128), { maxItems: 16 }),
    cpe_name: word(256),
    /** What the release rules of MAT-110 and MAT-112 need beside: SUSE's product, a derivative's Ubuntu release. */
    pretty_name: Type.Optional(word(128)),
    ubuntu_codename: Type.Optional(word(128)),
    /** Alpine: `edge` when the repositories say so. */
    branch: Type.Optional(word(64)),
  }),
  kernel: Type.Object({
    /** `uname -r`; empty when only files below a root were read. */
    running: word(256),
    /** `uname -v`. */
    build: word(512),
    booted_at_ms: moment,
  }),
  reboot_required: Type.Boolean(),
  livepatch_active: Type.Boolean(),
  esm: Type.Object({ attached: Type.Boolean(), infra: Type.Boolean(), apps: Type.Boolean() }),
  elts: Type.Boolean(),
  /** Enabled module streams: name → stream. */
  modules: Type.Record(Type.String({ maxLength: 128 }), word(128)),
  system: Type.Union([...PACKAGE_SYSTEMS.map(name => Type.Literal(name)), Type.Literal('')]),
  error_codes: Type.Array(Type.Union(SCAN_ERROR_CODES.map(code => Type.Literal(code))), {
    maxItems: SCAN_ERROR_CODES.length,
  }),
  /** Absent when the list could not be read whole: never a list that looks like a server without packages (MAT-015). */
  packages: Type.Optional(packageColumns),
})

export type Report = Static<typeof reportSchema>
