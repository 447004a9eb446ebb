// A worker asks the others what their shards know: who is online, how a machine stands, what /status counts. The question goes over a channel, answers come
// back in a list of its own; whoever has nothing to say says nothing, and the asker waits no longer than a second.
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { redisCause } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'

const WAIT_MS = 1_000
const LOOK_MS = 15
const ANSWER_KEPT_S = 10

export type Question =
  | { readonly kind: 'alerting'; readonly serverId: string }
  | { readonly kind: 'online'; readonly companyId: string }
  | { readonly kind: 'counts' }

type Asked = { readonly id: string; readonly owner: string; readonly question: Question }

function parseAsked(text: string): Asked | null {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || !('id' in value) || !('owner' in value) || !('question' in value))
    return null
  const { id, owner, question } = value
  if (typeof id !== 'string' || typeof owner !== 'string' || typeof question !== 'object' || question === null)
    return null
  if (!('kind' in question)) return null
  if (question.kind === 'alerting' && 'serverId' in question && typeof question.serverId === 'string')
    return { id, owner, question: { kind: 'alerting', serverId: question.serverId } }
  if (question.kind === 'online' && 'companyId' in question && typeof question.companyId === 'string')
    return { id, owner, question: { kind: 'online', companyId: question.companyId } }
  return question.kind === 'counts' ? { id, owner, question: { kind: 'counts' } } : null
}

export class RedisQuestions {
  private readonly listener: Redis

  /** `answer` resolves to JSON, or to null when this worker has nothing to say. */
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly owner: string,
    private readonly answer: (question: Question) => Promise<unknown>,
    onError: (cause: string) => void,
  ) {
    this.listener = redis.duplicate({ enableOfflineQueue: true, connectionName: 'collector-worker-questions' })
    // The connection it was made from tells of trouble.
    this.listener.on('error', () => {})
    this.listener.subscribe(keys.questions).catch(error => onError(redisCause(error)))
    this.listener.on('message', (_channel: string, text: string) => {
      this.receive(text).catch(error => onError(redisCause(error)))
    })
  }

  private async receive(text: string): Promise<void> {
    const asked = parseAsked(text)
    if (!asked || asked.owner === this.owner) return
    const answer = await this.answer(asked.question)
    if (answer === null) return
    const list = this.keys.answers(asked.id)
    await this.redis.multi().rpush(list, JSON.stringify(answer)).expire(list, ANSWER_KEPT_S).exec()
  }

  /** Asks the other workers. Resolves to their answers: `enough` of them, or those of a second. */
  async ask(question: Question, enough: 'first' | 'all'): Promise<unknown[]> {
    const others = (await this.redis.zcard(this.keys.workers)) - 1
    if (others <= 0) return []
    const asked: Asked = { id: randomUUID(), owner: this.owner, question }
    await this.redis.publish(this.keys.questions, JSON.stringify(asked))
    const list = this.keys.answers(asked.id)
    const endsAt = performance.now() + WAIT_MS
    for (;;) {
      const answers = await this.redis.lrange(list, 0, -1)
      const wanted = enough === 'first' ? 1 : others
      if (answers.length >= wanted || performance.now() > endsAt)
        return answers.map((text): unknown => JSON.parse(text))
      await Bun.sleep(LOOK_MS)
    }
  }

  close(): void {
    this.listener.disconnect()
  }
}
