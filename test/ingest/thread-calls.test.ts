import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  type AnswerMessage,
  CallClient,
  type CallMessage,
  CallServer,
  Direct,
} from '../../apps/collector/thread-calls.ts'
import { until } from '../support/until.ts'
import type { TestCalls, TestNotice } from './answering-thread.ts'

class Refused extends Error {}

/** The error that a call rejects with. */
const errorOf = (call: Promise<unknown>): Promise<Error | null> =>
  call.then(
    () => null,
    error => error,
  )

describe('calls to a thread', () => {
  let worker: Worker
  let calls: CallClient<TestCalls>
  /** What the thread said, in its order. */
  const told: string[] = []

  beforeEach(() => {
    told.length = 0
    worker = new Worker(new URL('./answering-thread.ts', import.meta.url))
    calls = new CallClient(worker, reason => new Refused(reason))
    worker.onmessage = (event: MessageEvent<AnswerMessage | TestNotice>) => {
      if (event.data.kind === 'changed') told.push(`changed to ${event.data.value}`)
      else calls.receive(event.data)
    }
    worker.onerror = () => calls.failAll('the thread failed')
  })
  afterEach(() => worker.terminate())

  test('each call gets its own result, in whatever order the thread answers', async () => {
    const held = calls.call('hold')
    expect(await Promise.all([calls.call('add', 1, 2), calls.call('add', 20, 3)])).toEqual([3, 23])
    expect(await calls.call('release', 'at last')).toBeNull()
    expect(await held).toBe('at last')
  })

  test('a handler that throws, or rejects later, is a rejected call with its words, and the thread goes on', async () => {
    for (const isLater of [false, true]) {
      const error = await errorOf(calls.call('refuse', 'no room', isLater))
      expect(error).toBeInstanceOf(Refused)
      expect(error?.message).toBe('in words: no room')
    }
    expect(await calls.call('add', 1, 1)).toBe(2)
  })

  test('memory that is transferred changes hands both ways', async () => {
    const buffer = new Uint8Array([1, 2, 3]).buffer
    const back = await new Promise<ArrayBuffer>((resolve, reject) =>
      calls.send('increment', [buffer], { resolve, reject }, [buffer]),
    )
    expect(buffer.byteLength).toBe(0)
    expect([...new Uint8Array(back)]).toEqual([2, 3, 4])
  })

  test('an answer is taken before a notice that the thread sent in the same step after it', async () => {
    const looked = Array.from(
      { length: 50 },
      () =>
        new Promise<void>((resolve, reject) =>
          calls.send('look', [], {
            resolve: value => {
              told.push(`is ${value}`)
              resolve()
            },
            reject,
          }),
        ),
    )
    await Promise.all(looked)
    await until('the last notice', () => told.length === 100)
    expect(told).toEqual(Array.from({ length: 50 }, (_, value) => [`is ${value}`, `changed to ${value + 1}`]).flat())
  })

  test('what cannot be sent is rejected at once, and nobody waits for it', async () => {
    const error = await errorOf(calls.call('release', () => 'a function'))
    expect(error?.name).toBe('DataCloneError')
    expect(await calls.call('add', 2, 2)).toBe(4)
  })

  test('a thread whose handler must not be survived ends, and whoever waits is told', async () => {
    const waiting = [calls.call('hold'), calls.call('die')]
    const errors = await Promise.all(waiting.map(errorOf))
    expect(errors.map(error => error?.message)).toEqual(['the thread failed', 'the thread failed'])
    expect(errors[0]).toBeInstanceOf(Refused)
  })
})

describe('the end of a client', () => {
  type Calls = { wait: { args: []; result: number } }

  const start = () => {
    const { port1, port2 } = new MessageChannel()
    const waiting: (() => void)[] = []
    const server = new CallServer<Calls>(port2, {
      wait: new Direct(call => void waiting.push(() => server.answer(call, waiting.length))),
    })
    let received = 0
    port2.onmessage = event => server.receive(event.data as CallMessage<Calls>)
    const client = new CallClient<Calls>(port1)
    port1.onmessage = event => {
      received++
      client.receive(event.data)
    }
    const close = () => {
      port1.close()
      port2.close()
    }
    return { client, waiting, received: () => received, close }
  }

  test('failAll rejects every call under way with the reason, and every later call; the first reason stays', async () => {
    const { client, waiting, close } = start()
    const errors = Promise.all([client.call('wait'), client.call('wait')].map(errorOf))
    await until('both calls', () => waiting.length === 2)
    expect(client.isEnded).toBe(false)
    client.failAll('the store is closed')
    client.failAll('it ended')
    expect((await errors).map(error => error?.message)).toEqual(['the store is closed', 'the store is closed'])
    expect(client.isEnded).toBe(true)
    expect((await errorOf(client.call('wait')))?.message).toBe('the store is closed')
    expect(waiting.length).toBe(2)
    close()
  })

  test("an answer that comes after the end is nobody's", async () => {
    const { client, waiting, received, close } = start()
    const error = errorOf(client.call('wait'))
    await until('the call', () => waiting.length === 1)
    client.failAll('closed')
    waiting[0]!()
    await until('the answer', () => received() === 1)
    expect((await error)?.message).toBe('closed')
    close()
  })

  test('an answer to no call is a fault of the program', () => {
    const { client, close } = start()
    expect(() => client.receive({ kind: 'answer', id: 7, result: 1 })).toThrow('an answer belongs to a call')
    close()
  })
})
