// How often the runtime's allocator (Bun's mimalloc) gives back the holes of its pages. It looks ten times a second by
// default, and on a thread of its own: a third of what an idle site uses, and a tenth of a worker's time at the pace
// of a fleet. Every two seconds it gives back the same. It reads its settings from the environment before any code of
// ours runs, so an executable that finds none starts itself again with one: the same process, before it has opened
// anything. Import this file first: what is imported after it is not run twice.

import { ptr } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import { cLibrary } from './c-library.ts'

/** By its name in the environment; ms. What an operator sets there stays. */
export const allocatorSetting = { name: 'MIMALLOC_PURGE_HOLES_MIN_INTERVAL', value: '2000' } as const

/** What this process was started with, byte for byte: process.argv and process.env differ from it. */
const startedWith = (what: 'cmdline' | 'environ'): string[] =>
  readFileSync(`/proc/self/${what}`, 'latin1').split('\0').slice(0, -1)

/** The form of argv and environ in C: an array of pointers to texts, ended by a null pointer. */
function textsOfC(texts: readonly string[]): { readonly pointers: BigUint64Array; readonly bytes: readonly Buffer[] } {
  const bytes = texts.map(text => Buffer.from(`${text}\0`, 'latin1'))
  return { pointers: BigUint64Array.from([...bytes.map(text => BigInt(ptr(text))), 0n]), bytes }
}

/** Does not return, unless the system has no such call or refuses it: then the process goes on as it is. */
function startAgain(): void {
  if (process.platform !== 'linux') return
  const environment = startedWith('environ')
  if (environment.some(variable => variable.startsWith(`${allocatorSetting.name}=`))) return
  const library = cLibrary({ execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'i32' } })
  if (library === null) return
  const words = textsOfC(startedWith('cmdline'))
  const variables = textsOfC([...environment, `${allocatorSetting.name}=${allocatorSetting.value}`])
  library.symbols.execve(ptr(Buffer.from(`${process.execPath}\0`)), ptr(words.pointers), ptr(variables.pointers))
  library.close()
}

// From source every module is read before the first one runs, so that a second start would cost as much as the first:
// whoever starts a process from source gives it the setting.
if (import.meta.url.includes('/$bunfs/')) startAgain()
