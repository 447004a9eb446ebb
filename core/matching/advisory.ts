// Rows of the vulnerability database (MAT section 4), in the form that every source is normalised to.

export type FixStatus = 'fixed' | 'no_fix' | 'wont_fix' | 'undetermined'

/** Where a fix is published: `esm` and `elts` are paid extensions of Ubuntu and Debian. */
export type FixChannel = 'standard' | 'esm' | 'elts'

/**
 * One vulnerability of one package in one release. It hits versions with introduced ≤ version, and version < fixed or
 * version ≤ last_affected, or all of them when neither is given (MAT-114). Keys are the ones that are stored;
 * absent members are not stored, so that equal rules have equal bytes (MAT-075).
 */
export type Rule = {
  readonly vuln: string
  /** Sorted, each once. */
  readonly advisories: readonly string[]
  readonly introduced?: string
  readonly fixed?: string
  readonly last_affected?: string
  /** Only where a source lists single versions and no range (MAT-076). */
  readonly versions?: readonly string[]
  readonly status: FixStatus
  readonly channel: FixChannel
  /** The distribution's own word, in lower case; empty when it has none. */
  readonly severity: string
  readonly minor: boolean
  readonly no_distro_fix: boolean
  readonly arches?: readonly string[]
  /** `name:stream`. */
  readonly module?: string
  /** Mark of a special build, as `fips` or `ksplice`, which only versions with the same mark are compared with. */
  readonly flavour?: string
  /** Binary packages that the rule is limited to, where the source says so (MAT-078). */
  readonly binaries?: readonly string[]
}

/** All rules of one package of one release. `digest` is the SHA-256 of the rules' stored bytes. */
export type Affected = {
  readonly release: string
  readonly package: string
  /** Whether the source names its packages by source or by binary package. */
  readonly by: 'source' | 'binary'
  readonly digest: string
  readonly rules: readonly Rule[]
}

/** A release of a distribution, with its ends of support as days `YYYY-MM-DD`; empty when unknown. */
export type Release = {
  /**
   * `<distro>:<release>` in lower case: `debian:12`, `ubuntu:22.04`, `alpine:3.20`, `rhel:9`, `almalinux:9`,
   * `suse:15.5` for all products of a service pack, `opensuse:15.6`, `opensuse:tumbleweed`.
   */
  readonly id: string
  readonly distro: string
  readonly version: string
  readonly codename: string
  readonly standard_until: string
  readonly extended_until: string
  readonly eol_until: string
  /** The paid extension that exists for it, if any. */
  readonly channel: FixChannel
  /** Ids of the releases that follow it, oldest first. */
  readonly successors: readonly string[]
}

/** What is said of a vulnerability whatever the package. Absent scores are null. */
export type Vulnerability = {
  readonly id: string
  readonly aliases: readonly string[]
  readonly severity: string
  readonly cvss_vector: string
  readonly cvss_score: number | null
  readonly score_source: string
  readonly published_ms: number | null
  readonly modified_ms: number | null
  readonly title: string
  readonly references: readonly string[]
  readonly kev: boolean
  readonly kev_due_date: string
  readonly epss: number | null
}

/** Where a database file is read from: by the server that matches, and by the commands `match` and `explain`. */
export interface AdvisoryReader {
  /** yyyymmddNN, or 0 when there is no database (MAT-070). */
  readonly version: number
  release(id: string): Release | undefined
  releases(): readonly Release[]
  /** Whether the source that covers a distribution is in the database (MAT-111: else no_db). */
  coversDistro(distro: string): boolean
  /** Whether any row of the release is there (MAT-111: else unsupported_release). */
  hasRows(releaseId: string): boolean
  affected(releaseId: string, packageName: string, by: Affected['by']): Affected | undefined
  vulnerability(id: string): Vulnerability | undefined
  /** Reads at one go what `vulnerability` is about to be asked for; a reader that holds all has no need of it. */
  readVulnerabilities?(ids: readonly string[]): void
}
