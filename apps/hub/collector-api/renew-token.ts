// POST /agents/{agent_id}/renew: an agent's token is replaced; the old one stays valid for 24 hours (document 1 "Token
// rotation"). The clear token is in this answer and nowhere else; audit has neither token nor hash.
import { eq, sql } from 'drizzle-orm'
import { rotateToken } from '../../../core/lifecycle/token-rotation.ts'
import { writeAudit } from '../audit/audit.ts'
import { pushAgents } from '../collectors/collector-jobs.ts'
import { newAgentToken, tokenHash } from '../identity/token-forms.ts'
import { newestLicense } from '../licenses/license-migrations.ts'
import { agents } from '../platform/db/schema.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { ApiError, notFound, tooManyRequests } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'

export async function renewToken(context: RouteContext, agentId: string, presentedHash: string) {
  const { hub } = context
  if (!hub.config['agents.token_rotation'])
    throw new ApiError(503, 'unavailable', words('unavailable'), { headers: { 'Retry-After': '3600' } })
  if (!isUuid(agentId)) throw notFound()
  try {
    return await rotate(context, agentId, presentedHash)
  } catch (error) {
    // A rotation that the hub could not do must not cost the agent its licence's migration (decision G-20).
    if (!(error instanceof ApiError))
      await hub.database.db
        .update(agents)
        .set({ rotationFailedAt: new Date(hub.now()) })
        .where(eq(agents.id, agentId))
        .catch(() => {})
    throw error
  }
}

function rotate({ hub, caller, ip }: RouteContext, agentId: string, presentedHash: string) {
  return inTransaction(hub.database.db, async tx => {
    const [agent] = await tx.db.select().from(agents).where(eq(agents.id, agentId)).for('update')
    if (!agent) throw notFound()
    const token = newAgentToken()
    const rotation = rotateToken(
      {
        state: agent.state,
        tokenHash: agent.tokenHash,
        prevTokenHash: agent.prevTokenHash,
        prevTokenExpiresAtMs: agent.prevTokenExpiresAt?.getTime() ?? null,
        rotatedAtMs: agent.rotatedAt.map(at => at.getTime()),
      },
      presentedHash.toLowerCase(),
      tokenHash(token),
      hub.config['rate.rotations_per_hour'],
      hub.now(),
    )
    if (rotation.kind === 'not_found') throw notFound()
    if (rotation.kind === 'rate_limited') throw tooManyRequests(rotation.retryAfterSeconds)
    const validUntil = new Date(rotation.prevTokenExpiresAtMs)
    const times = rotation.rotatedAtMs.map(at => new Date(at).toISOString())
    await tx.db
      .update(agents)
      .set({
        tokenHash: rotation.tokenHash,
        prevTokenHash: rotation.prevTokenHash,
        prevTokenExpiresAt: validUntil,
        rotationFailedAt: null,
        licenseId: agent.licenseId === null ? null : await newestLicense(tx, agent.licenseId),
        version: agent.version + 1,
      })
      .where(eq(agents.id, agentId))
    await tx.db.execute(
      sql`update monitoring_agents set rotated_at = ${`{${times.join(',')}}`}::timestamptz[] where id = ${agentId}`,
    )
    tx.touch('agents', [agentId])
    // An ingest process that did not request the renewal learns the new token before its next pull (decision G-181).
    await pushAgents(hub, tx, [agentId])
    await writeAudit(tx, {
      companyId: agent.companyId,
      actor: { type: 'collector', id: caller.user.id, name: caller.user.name },
      action: 'agent.rotate',
      subject: { type: 'agent', id: agentId, name: agent.hostname },
      ip,
    })
    return {
      agent_token: token,
      old_token_valid_until: validUntil,
      agent: {
        agent_id: agentId,
        company_id: agent.companyId,
        server_id: agent.serverId,
        state: agent.state,
        token_hash: rotation.tokenHash,
        prev_token_hash: rotation.prevTokenHash,
        prev_token_expires_at: validUntil,
        version: agent.version + 1,
      },
    }
  })
}
