// Calls of the C library that the runtime has no function for.
import { dlopen, type FFIFunction, type Library } from 'bun:ffi'

/** The C libraries of Linux distributions: glibc, and musl. */
const NAMES = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]

/** Null where no library is found that has these functions. */
export function cLibrary<Functions extends Record<string, FFIFunction>>(
  functions: Functions,
): Library<Functions> | null {
  for (const name of NAMES) {
    try {
      return dlopen(name, functions)
    } catch {
      // Another C library: try the next name.
    }
  }
  return null
}
