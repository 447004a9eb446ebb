// A worker asks the others what their shards know: who is online, how a server stands, what /status counts; and has
// them pull a feed. The question goes over a channel, answers come back in a list of its own. Redis says how many hear
// the question: so many answers are waited for, and no longer than a time limit.
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type ReloadFeed, reloadFeeds } from './redis-announcements.ts'
import { redisCause } from './redis-client.ts'
import type { RedisKeys } from './redis-keys.ts'

const WAIT_MS = 1_000
const POLL_MS = 15
const ANSWER_KEPT_S = 10

export type Question =
  | { readonly kind: 'alerting'; readonly serverId: string }
  | { readonly kind: 'online'; readonly companyId: string }
  | { readonly kind: 'counts' }
  /** To pull it and put it in force, before the answer. */
  | { readonly kind: 'reload'; readonly feed: ReloadFeed }

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
  if (question.kind === 'reload' && 'feed' in question) {
    const feed = reloadFeeds.find(each => each === question.feed)
    return feed ? { id, owner, question: { kind: 'reload', feed } } : null
  }
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
    this.listener = redis.duplicate({
      // It subscribes once it is there, however long that takes.
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      connectionName: 'collector-worker-questions',
    })
    // The connection it was made from tells of trouble.
    this.listener.on('error', () => {})
    this.listener.subscribe(keys.questions).catch(error => onError(redisCause(error)))
    this.listener.on('message', (_channel: string, text: string) => {
      this.receive(text).catch(error => onError(redisCause(error)))
    })
  }

  /**
   * Every worker answers, also its own question and also that it has nothing to say: who asks knows when nobody else
   * will.
   */
  private async receive(text: string): Promise<void> {
    const asked = parseAsked(text)
    if (!asked) return
    const answer = asked.owner === this.owner ? null : await this.answer(asked.question)
    const list = this.keys.answers(asked.id)
    await this.redis.multi().rpush(list, JSON.stringify(answer)).expire(list, ANSWER_KEPT_S).exec()
  }

  /**
   * Asks the other workers. Resolves to what they say: `enough` of it, or what came in `waitMs`. Who is gone is not
   * waited for.
   */
  async ask(question: Question, enough: 'first' | 'all', waitMs = WAIT_MS): Promise<unknown[]> {
    const asked: Asked = { id: randomUUID(), owner: this.owner, question }
    const hearers = await this.redis.publish(this.keys.questions, JSON.stringify(asked))
    const list = this.keys.answers(asked.id)
    const endsAt = performance.now() + waitMs
    for (;;) {
      const texts = await this.redis.lrange(list, 0, -1)
      const answers = texts.map((text): unknown => JSON.parse(text)).filter(answer => answer !== null)
      const isEnough = enough === 'first' && answers.length > 0
      if (isEnough || texts.length >= hearers || performance.now() > endsAt) return answers
      await Bun.sleep(POLL_MS)
    }
  }

  close(): void {
    this.listener.disconnect()
  }
}
