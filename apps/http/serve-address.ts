// What an operator is told when the address of a key cannot be served.
import { codeOf, listenAdvice } from '../../core/config/address.ts'

/** Serves on the address that a key has. Throws, in words for the operator, when the address is the reason. */
export function serveAddress<T>(key: string, address: string, serve: () => T): T {
  try {
    return serve()
  } catch (error) {
    const advice = listenAdvice(codeOf(error), key)
    throw advice === null ? error : new Error(`${key}: cannot serve on ${address}: ${advice}`, { cause: error })
  }
}
