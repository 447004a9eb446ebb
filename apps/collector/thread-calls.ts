// Calls between threads: one side asks, the other answers under the number of the question. What may be asked is a
// table of types, one for each direction, and a compiler's error where the sides differ. What a thread tells without an
// answer is no call: those notices are unions in the files of messages, and go over the same port in the order of both.
import { assert } from '../../core/assert.ts'

type Call = { readonly args: readonly unknown[]; readonly result: unknown }
/** Every call of one direction, by its name: what goes over, and what comes back. */
type CallTable = Readonly<Record<string, Call>>
type Name<C extends CallTable> = keyof C & string

export type CallMessage<C extends CallTable> = {
  [N in Name<C>]: { readonly kind: 'call'; readonly id: number; readonly name: N; readonly args: C[N]['args'] }
}[Name<C>]

export type AnswerMessage =
  | { readonly kind: 'answer'; readonly id: number; readonly result: unknown }
  /** `reason` is for the log of the operator. */
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }

/** A worker, the thread that it belongs to, or a port. */
type Port = { postMessage(message: unknown, transfer: ArrayBuffer[]): void }
const NOTHING_TRANSFERRED: ArrayBuffer[] = []

/** Who waits for a result; called in the step that receives it, before any later message of the port is. */
export type Waiting<R> = { resolve(result: R): void; reject(error: Error): void }

/** The side that asks. Whoever reads the port hands the answers to `receive`. */
export class CallClient<C extends CallTable> {
  private readonly waiting = new Map<number, Waiting<never>>()
  private lastId = 0
  private ended: Error | null = null

  /** `errorOf`: the error of a call that failed, from the words of the other side. */
  constructor(
    private readonly port: Port,
    private readonly errorOf: (reason: string) => Error = reason => new Error(reason),
  ) {}

  get isEnded(): boolean {
    return this.ended !== null
  }

  call<N extends Name<C>>(name: N, ...args: C[N]['args']): Promise<C[N]['result']> {
    return new Promise((resolve, reject) => this.send(name, args, { resolve, reject }))
  }

  /**
   * A call whose answer must be taken in the step that receives it, or which gives memory away: `transfer` changes
   * hands.
   */
  send<N extends Name<C>>(
    name: N,
    args: C[N]['args'],
    waiting: Waiting<C[N]['result']>,
    transfer = NOTHING_TRANSFERRED,
  ): void {
    if (this.ended) {
      waiting.reject(this.ended)
      return
    }
    const id = ++this.lastId
    // First: nobody waits for what cannot be sent.
    this.port.postMessage({ kind: 'call', id, name, args }, transfer)
    this.waiting.set(id, waiting)
  }

  receive(message: AnswerMessage): void {
    const waiting = this.waiting.get(message.id)
    if (!waiting) {
      assert(this.ended, 'an answer belongs to a call')
      return
    }
    this.waiting.delete(message.id)
    if (message.kind === 'failed') waiting.reject(this.errorOf(message.reason))
    // The other side's table says what answers this call: the one place where the compiler cannot see it.
    else waiting.resolve(message.result as never)
  }

  /** The other side is gone or closed: whoever waits is told, and whoever calls from now on. The first reason stays. */
  failAll(reason: string): void {
    this.ended ??= this.errorOf(reason)
    const waiting = [...this.waiting.values()]
    this.waiting.clear()
    for (const each of waiting) each.reject(this.ended)
  }
}

declare const result: unique symbol
/** The number of a call that is to be answered with an `R`. */
type CallId<R> = number & { readonly [result]?: (result: R) => void }

/**
 * A handler that answers by itself, with `CallServer.answer`: in the very step in which it knows the answer, or with
 * memory that changes hands. An error out of it is not answered: it ends the thread.
 */
export class Direct<C extends Call> {
  constructor(readonly handle: (call: CallId<C['result']>, ...args: C['args']) => void) {}
}

type Handler<C extends Call> = ((...args: C['args']) => C['result'] | Promise<C['result']>) | Direct<C>
export type Handlers<C extends CallTable> = { readonly [N in Name<C>]: Handler<C[N]> }

/** An error as its own words. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * The side that answers. Whoever reads the port hands the calls to `receive`; a handler that knows its result at once
 * is answered in the same step.
 */
export class CallServer<C extends CallTable> {
  private readonly handlers: Readonly<Record<string, ((...args: never[]) => unknown) | Direct<Call>>>

  /**
   * `wordsOf` says an error in words for the operator of the side that asked. Where it throws instead, nobody is
   * answered and the thread ends.
   */
  constructor(
    private readonly port: Port,
    handlers: Handlers<C>,
    private readonly wordsOf: (error: unknown) => string = messageOf,
  ) {
    this.handlers = handlers
  }

  receive({ id, name, args }: CallMessage<C>): void {
    const handler = this.handlers[name]
    assert(handler, 'both sides know the same calls')
    if (handler instanceof Direct) handler.handle(id, ...args)
    else this.handle(id, handler, args)
  }

  private handle(id: number, handler: (...args: never[]) => unknown, args: readonly unknown[]): void {
    try {
      const answered = handler(...(args as never[]))
      if (answered instanceof Promise) void this.answerLater(id, answered)
      else this.answer(id, answered)
    } catch (error) {
      this.fail(id, error)
    }
  }

  private async answerLater(id: number, answered: Promise<unknown>): Promise<void> {
    try {
      this.answer(id, await answered)
    } catch (error) {
      this.fail(id, error)
    }
  }

  answer<R>(id: CallId<R>, result: R, transfer = NOTHING_TRANSFERRED): void {
    this.port.postMessage({ kind: 'answer', id, result }, transfer)
  }

  private fail(id: number, error: unknown): void {
    this.port.postMessage({ kind: 'failed', id, reason: this.wordsOf(error) }, NOTHING_TRANSFERRED)
  }
}
