// Package instances, interned once for the whole fleet, and the groups of packages that are found together: all
// binaries of one source (MAT sections 6 and 9). Nothing here is of a tenant (MAT-189).
import type { Database } from 'bun:sqlite'
import type { PackageInstance } from '../../../core/matching/package-instance.ts'
import type { PackageColumns, PackageSystem } from '../../../core/matching/report-schema.ts'
import { digestOf } from './digest.ts'
import { InstanceNumbers } from './instance-numbers.ts'
import { NumberColumn, RecentMap } from './recent-map.ts'
import type { AdvisoryKey } from './state-types.ts'
import type { StateWriter } from './state-writer.ts'
import type { UseMarks } from './use-marks.ts'

/** What matching says of an instance alone. */
export type InstanceKeys = {
  /** The group that its findings are of: the source package, the kernel's canonical source. */
  readonly packageKey: string
  /** Rows of a vulnerability database that may speak of it. */
  readonly lookups: readonly AdvisoryKey[]
}

type InstanceRow = {
  readonly id: number
  readonly package_group: number
  readonly system: PackageSystem
  readonly release: string
  readonly name: string
  readonly version: string
  readonly arch: string
  readonly source: string
  readonly source_version: string
  readonly module: string
  readonly vendor: string
}

const COLUMNS = 'id, package_group, system, release, name, version, arch, source, source_version, module, vendor'
/** Instances of one name that are read at one go. */
const NAMED_AT_ONCE = 500
/** Instances whose number memory knows: those of a large fleet. */
const KNOWN_MAX = 600_000

export const advisoryKeyText = (key: AdvisoryKey): string => `${key.release}\n${key.by}\n${key.package}`

export class InstanceRows {
  readonly #keysOf: (instance: PackageInstance) => InstanceKeys
  readonly #byDigest
  readonly #insert
  readonly #byId
  readonly #insertKey
  readonly #drop
  readonly #dropKey
  readonly #dropGroup
  readonly #marks: UseMarks
  /** Numbers are not given again while memory may know of them. */
  #nextId = 1
  readonly #byKey
  readonly #has
  readonly #named
  readonly #insertGroup
  readonly #groupNames = new Map<string, number>()
  /** By number of the instance. */
  readonly #groups = new NumberColumn()
  readonly #ids = new InstanceNumbers(KNOWN_MAX)
  readonly #recent = new RecentMap<number, PackageInstance>(50_000)
  readonly #countRows
  /** Null when it must be counted again. */
  #count: number | null = null

  constructor(
    database: Database,
    writer: StateWriter,
    keysOf: (instance: PackageInstance) => InstanceKeys,
    marks: UseMarks,
  ) {
    this.#keysOf = keysOf
    this.#marks = marks
    this.#byDigest = database.prepare<{ readonly id: number }, [Uint8Array]>('SELECT id FROM instance WHERE digest = ?')
    this.#insert = database.prepare<
      unknown,
      [Uint8Array, number, number, string, string, string, string, string, string, string, string, string]
    >(`INSERT INTO instance (digest, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    this.#drop = database.prepare<InstanceRow, [number]>(`DELETE FROM instance WHERE id = ? RETURNING ${COLUMNS}`)
    this.#dropKey = database.prepare<unknown, [string, number]>(
      'DELETE FROM instance_key WHERE key = ? AND instance = ?',
    )
    this.#dropGroup = database.prepare<{ readonly name: string }, [number]>(
      `DELETE FROM package_group WHERE id = ? AND name NOT LIKE char(10) || '%' RETURNING name`,
    )
    this.#byId = database.prepare<InstanceRow, [number]>(`SELECT ${COLUMNS} FROM instance WHERE id = ?`)
    this.#insertKey = database.prepare<unknown, [string, number]>(
      'INSERT OR IGNORE INTO instance_key (key, instance) VALUES (?, ?)',
    )
    this.#byKey = database.prepare<InstanceRow, [string]>(
      `SELECT ${COLUMNS} FROM instance WHERE id IN (SELECT instance FROM instance_key WHERE key = ?)`,
    )
    this.#has = database.prepare<{ readonly id: number }, [number]>('SELECT id FROM instance WHERE id = ?')
    this.#named = database.prepare<InstanceRow, [string, number, string, number, number]>(
      `SELECT ${COLUMNS} FROM instance WHERE id IN (
         SELECT id FROM (SELECT id FROM instance WHERE name = ? AND id > ? ORDER BY id LIMIT ${NAMED_AT_ONCE})
         UNION SELECT id FROM (SELECT id FROM instance WHERE source = ? AND id > ? ORDER BY id LIMIT ${NAMED_AT_ONCE}))
       ORDER BY id LIMIT ?`,
    )
    this.#insertGroup = database.prepare<{ readonly id: number }, [string]>(
      'INSERT INTO package_group (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id',
    )
    const groups = database.prepare<{ readonly id: number; readonly name: string }, []>(
      'SELECT id, name FROM package_group',
    )
    for (const row of groups.iterate()) this.#groupNames.set(row.name, row.id)
    const known = database.prepare<Pick<InstanceRow, 'id' | 'package_group'>, []>(
      'SELECT id, package_group FROM instance',
    )
    for (const row of known.iterate()) {
      this.#groups.set(row.id, row.package_group)
      this.#nextId = Math.max(this.#nextId, row.id + 1)
    }
    this.#countRows = database.prepare<{ readonly count: number }, []>('SELECT count(*) AS count FROM instance')
    writer.onRollback(() => this.forget())
  }

  get count(): number {
    this.#count ??= this.#countRows.get()?.count ?? 0
    return this.#count
  }

  /** The numbers of a report's packages, sorted, each once. Within a work of the writer only. */
  intern(system: PackageSystem, release: string, packages: PackageColumns): Int32Array {
    const { name, version, arch, source, source_version, module, vendor } = packages
    const numbers = new Set<number>()
    const ids = this.#ids.of(`${system}\n${release}`)
    for (let row = 0; row < name.length; row++) {
      const columns = {
        name: name[row]!,
        version: version[row]!,
        arch: arch[row]!,
        source: source[row]! || name[row]!,
        sourceVersion: source_version[row]! || version[row]!,
        module: module[row]!,
        vendor: vendor[row]!,
      }
      let id = ids.get(columns)
      if (id === undefined) {
        id = this.#internOne({ system, release, ...columns })
        ids.set(columns, id)
      }
      numbers.add(id)
    }
    return Int32Array.from(numbers).sort()
  }

  get(id: number): PackageInstance {
    const known = this.#recent.get(id)
    if (known !== undefined) return known
    const row = this.#byId.get(id)
    if (row === null) throw new Error('cannot read the state: a package that a host refers to is missing')
    const instance = instanceOf(row)
    this.#recent.set(id, instance)
    return instance
  }

  groupOf(id: number): number {
    return this.#groups.get(id)
  }

  /** The number of a group, given to it now when it is new. Within a work of the writer only. */
  internGroup(name: string): number {
    const id = this.#groupNames.get(name) ?? this.#insertGroup.get(name)?.id
    if (id === undefined) throw new Error('cannot store a package group')
    this.#groupNames.set(name, id)
    this.#marks.groups.add(id)
    return id
  }

  /** Instances that a row of a vulnerability database may speak of; who asks is about to look at them. */
  ofKey(key: string): number[] {
    return this.#byKey.all(key).map(row => {
      this.#recent.set(row.id, instanceOf(row))
      return row.id
    })
  }

  /** Whether a number is still that of an instance: between two slices of work it may have gone. */
  has(id: number): boolean {
    return this.#recent.get(id) !== undefined || this.#has.get(id) !== null
  }

  /** Deletes an instance that no host has. Within a work of the writer only. */
  drop(id: number): void {
    const row = this.#drop.get(id)
    if (row === null) return
    const instance = instanceOf(row)
    for (const key of this.#keysOf(instance).lookups) this.#dropKey.run(advisoryKeyText(key), id)
    this.#ids.of(`${instance.system}\n${instance.release}`).delete(instance)
    this.#recent.delete(id)
    this.#count = null
  }

  /** Deletes a group of which there is no instance and no finding. Within a work of the writer only. */
  dropGroup(id: number): void {
    for (const { name } of this.#dropGroup.all(id)) this.#groupNames.delete(name)
  }

  /** Instances whose binary or source package has this name, some at a time: hosts can make any number of them. */
  *named(name: string): Generator<readonly { readonly id: number; readonly instance: PackageInstance }[]> {
    for (let after = 0; ; ) {
      const rows = this.#named.all(name, after, name, after, NAMED_AT_ONCE)
      yield rows.map(row => ({ id: row.id, instance: instanceOf(row) }))
      const last = rows.at(-1)
      if (rows.length < NAMED_AT_ONCE || last === undefined) return
      after = last.id
    }
  }

  /** Forgets what memory knows of rows: some were deleted, or were never committed. */
  forget(): void {
    this.#ids.clear()
    this.#recent.clear()
    this.#groupNames.clear()
    this.#count = null
  }

  #internOne(instance: PackageInstance): number {
    const digest = digestOf(identityOf(instance))
    const known = this.#byDigest.get(digest)
    if (known !== null) return known.id
    const { packageKey, lookups } = this.#keysOf(instance)
    const group = this.internGroup(packageKey)
    const { system, release, name, version, arch, source, sourceVersion, module, vendor } = instance
    const id = this.#nextId++
    this.#insert.run(digest, id, group, system, release, name, version, arch, source, sourceVersion, module, vendor)
    for (const key of lookups) this.#insertKey.run(advisoryKeyText(key), id)
    this.#groups.set(id, group)
    // It is about to be matched.
    this.#recent.set(id, instance)
    this.#count = null
    return id
  }
}

/** Lengths stand before the fields: a report may have any character in them, and no two instances may look alike. */
const identityOf = (instance: PackageInstance): string => {
  const { system, release, name, version, arch, source, sourceVersion, module, vendor } = instance
  const lengths = [name, version, arch, source, sourceVersion, module].map(text => text.length).join(' ')
  return `${system}\n${release}\n${lengths}\n${name}${version}${arch}${source}${sourceVersion}${module}${vendor}`
}

const instanceOf = (row: InstanceRow): PackageInstance => ({
  system: row.system,
  release: row.release,
  name: row.name,
  version: row.version,
  arch: row.arch,
  source: row.source,
  sourceVersion: row.source_version,
  module: row.module,
  vendor: row.vendor,
})
