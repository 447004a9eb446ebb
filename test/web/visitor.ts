// A person at the web interface without a browser: forms, cookies and the live stream over HTTP, against a hub of the
// API's harness.
import { randomUUID } from 'node:crypto'
import { createUser } from '../../apps/hub/identity/accounts.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import type { LiveSnapshot } from '../../apps/hub/web/live-view.ts'
import type { TestHub } from '../api/hub-harness.ts'

export const PASSWORD = 'correct horse battery staple'

export type Person = { readonly userId: string; readonly email: string; readonly companyId: string }

/** A user that can log in with PASSWORD. */
export async function newPerson(
  { hub }: TestHub,
  companyId: string,
  permissions: readonly string[] = ['*'],
  name = 'Test person',
): Promise<Person> {
  const email = `${randomUUID()}@example.test`
  const user = await inTransaction(hub.database.db, tx =>
    createUser(tx, { companyId, email, name, permissions, password: PASSWORD }),
  )
  return { userId: user.id, email, companyId }
}

/** Sends the login form. */
export const sendLogin = (
  url: string,
  email: string,
  password = PASSWORD,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(`${url}/login`, {
    method: 'POST',
    body: new URLSearchParams({ email, password }),
    redirect: 'manual',
    headers: { ...headers },
  })

export type Session = {
  readonly cookie: string
  readonly csrfToken: string
  /** The live page as it was served. */
  readonly page: string
}

const cookieOf = (response: Response): string => (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''

/** Logs in and reads the live page. */
export async function logIn(url: string, email: string): Promise<Session> {
  const response = await sendLogin(url, email)
  if (response.status !== 303) throw new Error(`the login answered ${response.status}`)
  const cookie = cookieOf(response)
  const page = await (await fetch(`${url}/`, { headers: { cookie } })).text()
  return { cookie, csrfToken: /data-csrf="([^"]+)"/.exec(page)?.[1] ?? '', page }
}

type LiveEvent = { readonly name: string; readonly data: unknown }

/** The live stream of a session; `next` waits for the next event of a name. */
export class Live {
  private readonly seen: LiveEvent[] = []
  private wake: () => void = () => {}
  private isOver = false

  private constructor(
    readonly response: Response,
    private readonly control: AbortController,
  ) {
    void this.read().catch(() => {})
  }

  static async open(url: string, cookie: string, search = ''): Promise<Live> {
    const control = new AbortController()
    const headers = { cookie, accept: 'text/event-stream' }
    return new Live(await fetch(`${url}/web/live${search}`, { headers, signal: control.signal }), control)
  }

  private async read(): Promise<void> {
    const decoder = new TextDecoder()
    let text = ''
    try {
      for await (const chunk of this.response.body ?? []) {
        text += decoder.decode(chunk, { stream: true })
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) this.take(block)
      }
    } finally {
      this.isOver = true
      this.wake()
    }
  }

  private take(block: string): void {
    const name = /^event: (.*)$/m.exec(block)?.[1]
    if (!name) return
    this.seen.push({ name, data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null') })
    this.wake()
  }

  /** The next event of this name. Rejects when the stream ends before it, or after fifteen seconds. */
  async next(name: string): Promise<unknown> {
    const deadline = AbortSignal.any([AbortSignal.timeout(15_000), this.control.signal])
    for (;;) {
      const at = this.seen.findIndex(event => event.name === name)
      if (at >= 0) return this.seen.splice(0, at + 1).at(-1)?.data
      if (this.isOver) throw new Error(`the stream ended before an event ${name}`)
      if (deadline.aborted) throw new Error(`no event ${name} came`)
      await new Promise<void>(resolve => {
        this.wake = resolve
        deadline.addEventListener('abort', () => resolve(), { once: true })
      })
    }
  }

  async snapshot(): Promise<LiveSnapshot> {
    return (await this.next('snapshot')) as LiveSnapshot
  }

  /** Resolves once the hub has ended the stream. */
  async ended(): Promise<void> {
    while (!this.isOver)
      await new Promise<void>(resolve => {
        this.wake = resolve
      })
  }

  /** Breaks the connection, as a browser that is closed. */
  close(): void {
    this.control.abort()
  }
}

/** One snapshot of a view, and nothing more of its stream. */
export async function onePicture(url: string, cookie: string, search = ''): Promise<LiveSnapshot> {
  const live = await Live.open(url, cookie, search)
  if (live.response.status !== 200) throw new Error(`the stream answered ${live.response.status}`)
  const snapshot = await live.snapshot()
  live.close()
  return snapshot
}
