// What an operator is told when the address of a key cannot be served.
import { codeOf, listenAdvice } from '../../core/config/address.ts'

/** Serves on the address that a key has. Throws, in words for the operator, when that cannot be. */
export function serveAddress<T>(key: string, address: string, serve: () => T): T {
  try {
    return serve()
  } catch (error) {
    const code = codeOf(error)
    if (typeof code !== 'string') throw error
    throw new Error(
      `${key}: cannot serve on ${address}: ${listenAdvice(code, key) ?? `the system refuses (${code})`}`,
      {
        cause: error,
      },
    )
  }
}
