// A thread that answers the calls of thread-calls.test.ts.
import { CallServer, Direct } from '../../apps/collector/thread-calls.ts'

declare const self: Worker

export type TestCalls = {
  add: { args: [one: number, other: number]; result: number }
  /** Answered when another call says so. */
  hold: { args: []; result: unknown }
  release: { args: [held: unknown]; result: null }
  refuse: { args: [reason: string, isLater: boolean]; result: null }
  /** The buffer comes back, each of its bytes one higher. */
  increment: { args: [buffer: ArrayBuffer]; result: ArrayBuffer }
  /** What is known, and in the same step the notice that it changed. */
  look: { args: []; result: number }
  die: { args: []; result: null }
}
export type TestNotice = { readonly kind: 'changed'; readonly value: number }

let value = 0
let release: (held: unknown) => void = () => {}

const calls = new CallServer<TestCalls>(
  self,
  {
    add: (one, other) => one + other,
    hold: () => new Promise(resolve => (release = resolve)),
    release: held => {
      release(held)
      return null
    },
    refuse: (reason, isLater) => {
      if (isLater) return Promise.reject(new Error(reason))
      throw new Error(reason)
    },
    increment: new Direct((call, buffer) => {
      const bytes = new Uint8Array(buffer)
      for (let at = 0; at < bytes.length; at++) bytes[at]!++
      calls.answer(call, buffer, [buffer])
    }),
    look: new Direct(async call => {
      await Promise.resolve()
      calls.answer(call, value)
      const notice: TestNotice = { kind: 'changed', value: ++value }
      postMessage(notice)
    }),
    die: () => Promise.reject(new Error('deadly')),
  },
  error => {
    const reason = error instanceof Error ? error.message : ''
    if (reason === 'deadly') throw error
    return `in words: ${reason}`
  },
)

self.onmessage = event => calls.receive(event.data)
