// The files of a Linux host that collectors read. The roots can be given, so that tests show another host.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type HostRoots = { readonly proc: string; readonly sys: string; readonly etc: string; readonly dbus: string }

export const linuxRoots: HostRoots = { proc: '/proc', sys: '/sys', etc: '/etc', dbus: '/var/lib/dbus' }

export class HostFiles {
  readonly #roots: HostRoots

  constructor(roots: HostRoots) {
    this.#roots = roots
  }

  /** The text of a file; null when it is not there or cannot be read (a carrier file of an interface that is down). */
  text(root: keyof HostRoots, path: string): string | null {
    try {
      return readFileSync(join(this.#roots[root], path), 'utf8')
    } catch {
      return null
    }
  }

  /** The bytes of a file, under the same rule. */
  bytes(root: keyof HostRoots, path: string): Uint8Array | null {
    try {
      return readFileSync(join(this.#roots[root], path))
    } catch {
      return null
    }
  }

  /** The names in a folder; none when it cannot be read. */
  names(root: keyof HostRoots, path: string): readonly string[] {
    try {
      return readdirSync(join(this.#roots[root], path))
    } catch {
      return []
    }
  }
}
